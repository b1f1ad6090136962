// Counts what documents and files have in common; see document_overlaps.h.
#include "statistics/document_overlaps.h"

#include <algorithm>
#include <utility>

#include "common/cancellation.h"

namespace gompfs {

DocumentOverlaps::DocumentOverlaps(const NgramSet& set, std::size_t max_files)
    : set_(set),
      max_files_(max_files),
      counts_(set.num_ngrams()),
      documents_(set.num_documents()),
      of_file_(set.num_documents()) {}

void DocumentOverlaps::add(std::uint32_t file, std::uint32_t ngram, std::uint64_t count) {
    if (file != file_) {
        end_file();
        file_ = file;
    }
    counts_[ngram] += count;
    for (const std::uint32_t document : set_.documents_of(ngram)) {
        FileOverlap& overlap = of_file_[document];
        if (overlap.num_ngrams == 0) {
            documents_of_file_.push_back(document);
        }
        ++overlap.num_ngrams;
        overlap.count += count;
    }
}

void DocumentOverlaps::end_file() {
    throw_if_cancelled();
    for (const std::uint32_t document : documents_of_file_) {
        FileOverlap overlap = of_file_[document];
        overlap.file = file_;
        of_file_[document] = {};
        std::vector<FileOverlap>& files = documents_[document].files;
        if (files.size() == max_files_) {
            if (files.empty() || !(overlap < files.front())) {
                continue;
            }
            std::pop_heap(files.begin(), files.end());
            files.pop_back();
        }
        files.push_back(overlap);
        std::push_heap(files.begin(), files.end());
    }
    documents_of_file_.clear();
}

std::vector<DocumentOverlap> DocumentOverlaps::finish() {
    end_file();
    for (std::uint32_t document = 0; document < documents_.size(); ++document) {
        DocumentOverlap& overlap = documents_[document];
        for (const std::uint32_t ngram : set_.ngrams_of(document)) {
            overlap.num_found += counts_[ngram] != 0;
            overlap.count += counts_[ngram];
        }
        std::sort_heap(overlap.files.begin(), overlap.files.end());
    }
    return std::move(documents_);
}

}  // namespace gompfs

// Counts the n-grams that documents and files have in common, file by file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "statistics/ngram_set.h"

namespace gompfs {

// The n-grams of a document in a file.
struct FileOverlap {
    std::uint32_t file;
    std::uint32_t num_ngrams;  // different ones
    std::uint64_t count;       // how often they occur in the file, together

    // Files with more n-grams come first; then files with higher counts.
    bool operator<(const FileOverlap& other) const {
        return std::tie(other.num_ngrams, other.count, file) <
               std::tie(num_ngrams, count, other.file);
    }
};

// The n-grams of a document in the archive.
struct DocumentOverlap {
    std::uint64_t num_found = 0;     // how many of its different n-grams occur
    std::uint64_t count = 0;         // how often these occur, together
    std::vector<FileOverlap> files;  // the first ones
};

class DocumentOverlaps {
  public:
    // Each document gets up to max_files files.
    DocumentOverlaps(const NgramSet& set, std::size_t max_files);

    // Adds how often an n-gram occurs in a file. Each file and n-gram once; all n-grams of a file
    // follow each other.
    void add(std::uint32_t file, std::uint32_t ngram, std::uint64_t count);
    // After the last one: by document.
    std::vector<DocumentOverlap> finish();

  private:
    void end_file();

    const NgramSet& set_;
    const std::size_t max_files_;
    std::vector<std::uint64_t> counts_;       // by n-gram, in all files
    std::vector<DocumentOverlap> documents_;  // their files are heaps, the last file on top
    std::uint32_t file_ = 0;                  // whose n-grams are added
    std::vector<FileOverlap> of_file_;        // by document
    std::vector<std::uint32_t> documents_of_file_;
};

}  // namespace gompfs

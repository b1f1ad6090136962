// Writes the lines of an index: an n-gram and the files that contain it; see index_report.h.
#include "statistics/index_report.h"

#include <algorithm>
#include <utility>

namespace gompfs {

std::string IndexReport::piece(std::size_t index) const {
    IndexWriter writer(corpus_, with_counts_, top_);
    merger_.merge(index, [&](NgramKey key, std::uint32_t file, std::uint64_t count) {
        writer.add(key, file, count);
    });
    return writer.finish();
}

std::string IndexWriter::finish() {
    if (!files_.empty()) {
        append_line();
    }
    return std::move(text_);
}

void IndexWriter::append_line() {
    corpus_.append_ngram(text_, key_);
    if (with_counts_) {
        std::stable_sort(
            files_.begin(), files_.end(),
            [](const FileCount& left, const FileCount& right) { return left.count > right.count; });
        files_.resize(std::min<std::uint64_t>(files_.size(), top_));
    }
    for (const FileCount& file : files_) {
        text_.push_back('\t');
        if (with_counts_) {
            append_count(text_, file.count);
            text_.push_back(' ');
        }
        text_.append(corpus_.files[file.file].path);
    }
    text_.push_back('\n');
    files_.clear();
}

}  // namespace gompfs

// Writes the lines of an index: an n-gram and the files that contain it; see index_report.h.
#include "statistics/index_report.h"

#include <algorithm>

namespace gompfs {

std::string IndexReport::piece(std::size_t index) const {
    std::string text;
    NgramKey last = 0;
    std::vector<FileCount> files;
    merger_.merge(index, [&](NgramKey key, std::uint32_t file, std::uint64_t count) {
        if (key != last && !files.empty()) {
            append_line(text, last, files);
            files.clear();
        }
        last = key;
        files.push_back({file, count});
    });
    if (!files.empty()) {
        append_line(text, last, files);
    }
    return text;
}

void IndexReport::append_line(std::string& text, NgramKey key,
                              std::vector<FileCount>& files) const {
    corpus_.append_ngram(text, key);
    if (with_counts_) {
        std::stable_sort(
            files.begin(), files.end(),
            [](const FileCount& left, const FileCount& right) { return left.count > right.count; });
        files.resize(std::min<std::uint64_t>(files.size(), top_));
    }
    for (const FileCount& file : files) {
        text.push_back('\t');
        if (with_counts_) {
            append_count(text, file.count);
            text.push_back(' ');
        }
        text.append(corpus_.files[file.file].path);
    }
    text.push_back('\n');
}

}  // namespace gompfs

// Merges texts of one statistic of several archives.
//
// A line is a key, a tab, and fields that are separated by tabs. The lines of a text are sorted by
// key, and each key has one line; so texts merge like sorted runs, a line of each text in memory.
// Merging is associative: texts can be merged in any groups, as long as their order is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gompfs {

// The keys and fields of a statistic, and what becomes of fields of equal keys. Paths are escaped
// (see gompfs/statistics/paths.py) and sorted as they are without that.
enum class LineMerge {
    add_counts,         // term, count: counts are added
    join_paths,         // term, paths: sorted by path
    join_ranked_paths,  // term, "count path" of files: sorted by descending count, then by path
    join_files,         // path, anything: the texts have no path in common
};

// Returns the merged text. `top` above 0 limits the ranked paths of a line. Throws
// std::invalid_argument if a text is not as described above, or if a sum exceeds 64 bits.
std::string merge_lines(const std::vector<std::string_view>& texts, LineMerge how,
                        std::uint64_t top);

// Returns lines `term, count` sorted by term. Throws std::invalid_argument.
std::string sort_lines(std::string_view text);

// Returns lines `term, count`, given by term, sorted by descending count, then by term. `top` above
// 0 limits the lines. Throws std::invalid_argument.
std::string sort_lines_by_count(std::string_view text, std::uint64_t top);

}  // namespace gompfs

// What `gompfs grep` prints, and how. The options have the names and meanings of ripgrep's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gompfs::search {

struct SearchOptions {
    enum class Output { lines, count, files_with_matches, files_without_match, json };

    Output output = Output::lines;
    bool is_inverted = false;
    bool is_multi_line = false;
    bool searches_binary = false;  // --text
    bool only_matching = false;
    bool has_line_numbers = false;
    bool has_columns = false;
    bool has_paths = true;
    bool has_heading = false;
    bool has_color = false;
    bool has_null = false;        // a NUL after each path
    bool counts_matches = false;  // --stats
    std::uint64_t max_count = ~std::uint64_t{0};
    std::uint64_t max_columns = 0;  // 0: any number
    std::size_t before = 0, after = 0;

    bool prints_lines() const { return output == Output::lines || output == Output::json; }
    bool has_context() const { return before != 0 || after != 0; }
    // Whether every match of a line is needed, not only whether there is one.
    bool needs_matches() const {
        return !is_inverted && (output == Output::json ||
                                (output == Output::lines &&
                                 (only_matching || has_columns || has_color || counts_matches)) ||
                                prints_match_counts());
    }
    // --count counts matches, not lines, with --only-matching or --multiline.
    bool prints_match_counts() const {
        return output == Output::count && (only_matching || is_multi_line) && !is_inverted;
    }
};

}  // namespace gompfs::search

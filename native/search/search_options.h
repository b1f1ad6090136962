// What `gompfs grep` prints, and how. The options have the names and meanings of ripgrep's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "search/text_decoder.h"

namespace gompfs::search {

// The escape sequences of --colors. Each begins with the one that resets.
struct OutputColors {
    std::string path, line, column, match;
};

struct SearchOptions {
    enum class Output {
        lines,
        count,
        files_with_matches,
        files_without_match,
        json,
        count_matches,
        files,  // all files, without a search
    };

    Output output = Output::lines;
    bool is_inverted = false;
    bool is_multi_line = false;
    bool is_crlf = false;             // lines may end with a carriage return and a line feed
    bool searches_binary = false;     // --text
    bool searches_after_nul = false;  // --binary
    bool ignores_byte_order = false;  // --encoding none
    std::shared_ptr<const TextEncoding> encoding;  // --encoding; nullptr: auto or none
    bool only_matching = false;
    bool prints_each_match = false;  // --vimgrep
    bool prints_all_lines = false;   // --passthru
    bool prints_zero_counts = false;
    bool trims = false;
    bool has_line_numbers = false;
    bool has_columns = false;
    bool has_byte_offsets = false;
    bool has_paths = true;
    bool has_heading = false;
    bool has_color = false;
    bool has_null = false;        // a NUL after each path
    bool has_preview = false;     // --max-columns-preview
    bool counts_matches = false;  // --stats
    std::uint64_t max_count = ~std::uint64_t{0};
    std::uint64_t max_columns = 0;  // 0: any number
    std::size_t before = 0, after = 0;
    std::optional<std::string> context_separator = "--";  // of groups of lines
    std::string match_separator = ":", field_context_separator = "-";
    char path_separator = '/';
    OutputColors colors;
    bool replaces = false;  // --replace

    bool prints_lines() const { return output == Output::lines || output == Output::json; }
    bool prints_counts() const {
        return output == Output::count || output == Output::count_matches;
    }
    bool has_context() const { return before != 0 || after != 0; }
    bool has_match_color() const { return has_color && !colors.match.empty(); }
    // Of a longer line, only the number of its matches is printed.
    std::size_t wanted_line_size() const {
        const bool omits = output == Output::lines && max_columns != 0 && !has_preview && !trims &&
                           !only_matching && !prints_each_match && !is_multi_line;
        return omits ? max_columns : ~std::size_t{0};
    }
    // Whether every match of a line is needed, not only whether there is one.
    bool needs_matches() const {
        return output == Output::json || counts_matches ||
               (output == Output::lines && (only_matching || prints_each_match || has_columns ||
                                            has_match_color() || replaces)) ||
               prints_match_counts();
    }
    // Whether the first match of a file tells all that is asked. As in ripgrep, with --invert-match
    // the file is read to its end, which may show that it is binary.
    bool needs_one_match() const {
        return (output == Output::files_with_matches || output == Output::files_without_match) &&
               !counts_matches && !is_inverted;
    }
    // --count counts matches, not lines, with --only-matching or --multiline.
    bool prints_match_counts() const {
        return !is_inverted && (output == Output::count_matches ||
                                (output == Output::count && (only_matching || is_multi_line)));
    }
    // Whether files without a match are printed too.
    bool needs_all_files() const {
        return is_inverted || output == Output::files_without_match || output == Output::files ||
               (prints_counts() && prints_zero_counts) || (prints_lines() && prints_all_lines);
    }
};

}  // namespace gompfs::search

// What `gompfs grep` prints, and how. The options have the names and meanings of ripgrep's; those
// of gompfs/search/query.py are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "search/files/text_decoder.h"

namespace gompfs::search {

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

    bool invert_match = false;
    bool crlf = false;  // lines may end with a carriage return and a line feed
    bool text = false;  // files with a NUL are searched as others
    std::shared_ptr<const TextEncoding> encoding;  // nullptr: auto or none
    bool ignores_byte_order = false;               // --encoding none
    std::optional<std::uint64_t> max_count;
    std::size_t context = 0;
    std::optional<std::size_t> before_context, after_context;  // in place of `context`
    // Each of these six chooses what is printed. At most one of them is set.
    bool count = false, count_matches = false, files_with_matches = false;
    bool files_without_match = false, json = false, files = false;
    bool quiet = false;
    bool only_matching = false;
    std::optional<std::string> replace;
    bool vimgrep = false;  // prints a line again for each of its matches
    bool line_number = false;
    bool column = false;
    bool with_filename = true;
    bool heading = false;
    bool null = false;  // a NUL after each path
    bool trim = false;
    std::uint64_t max_columns = 0;  // 0: any number
    bool color = false;
    bool stats = false;

    bool is_multi_line = false;  // of the matcher

    // Calls visit(name, member) for each option.
    template <typename Visit>
    void for_each(const Visit& visit) {
        visit("invert_match", invert_match);
        visit("crlf", crlf);
        visit("text", text);
        visit("encoding", encoding);
        visit("ignores_byte_order", ignores_byte_order);
        visit("max_count", max_count);
        visit("context", context);
        visit("before_context", before_context);
        visit("after_context", after_context);
        visit("count", count);
        visit("count_matches", count_matches);
        visit("files_with_matches", files_with_matches);
        visit("files_without_match", files_without_match);
        visit("json", json);
        visit("files", files);
        visit("quiet", quiet);
        visit("only_matching", only_matching);
        visit("replace", replace);
        visit("vimgrep", vimgrep);
        visit("line_number", line_number);
        visit("column", column);
        visit("with_filename", with_filename);
        visit("heading", heading);
        visit("null", null);
        visit("trim", trim);
        visit("max_columns", max_columns);
        visit("color", color);
        visit("stats", stats);
    }

    Output output() const {
        if (files || files_without_match) {
            return files ? Output::files : Output::files_without_match;
        }
        return quiet || files_with_matches ? Output::files_with_matches
               : json                      ? Output::json
               : count                     ? Output::count
               : count_matches             ? Output::count_matches
                                           : Output::lines;
    }
    bool prints_lines() const { return output() == Output::lines || output() == Output::json; }
    bool has_line_numbers() const { return line_number && prints_lines(); }
    bool has_columns() const { return column || vimgrep; }
    std::size_t before() const { return before_context.value_or(context); }
    std::size_t after() const { return after_context.value_or(context); }
    bool has_context() const { return before() != 0 || after() != 0; }
    // Of a longer line, only the number of its matches is printed.
    std::size_t wanted_line_size() const {
        const bool omits = output() == Output::lines && max_columns != 0 && !trim &&
                           !only_matching && !vimgrep && !is_multi_line;
        return omits ? max_columns : ~std::size_t{0};
    }
    // Whether matches are counted, besides lines.
    bool counts_matches() const { return stats || json; }
    // Whether every match of a line is needed, not only whether there is one.
    bool needs_matches() const {
        return counts_matches() || prints_match_counts() ||
               (output() == Output::lines && (only_matching || has_columns() || color || replace));
    }
    // Whether the first match of a file tells all that is asked. As in ripgrep, with --invert-match
    // the file is read to its end, which may show that it is binary.
    bool needs_one_match() const {
        return (output() == Output::files_with_matches ||
                output() == Output::files_without_match) &&
               !counts_matches() && !invert_match;
    }
    // Whether all that is asked of a file is how many of its lines match.
    bool needs_line_counts_only() const {
        return !invert_match && !counts_matches() && !prints_match_counts() &&
               (output() == Output::count || output() == Output::files_with_matches ||
                output() == Output::files_without_match);
    }
    // --count counts matches, not lines, with --only-matching or --multiline.
    bool prints_match_counts() const {
        return !invert_match && (output() == Output::count_matches ||
                                 (output() == Output::count && (only_matching || is_multi_line)));
    }
    // Whether files without a match are of interest too.
    bool needs_all_files() const {
        return invert_match || output() == Output::files_without_match || output() == Output::files;
    }
};

}  // namespace gompfs::search

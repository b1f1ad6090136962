// What a search looks for. The options have the names and meanings of ripgrep's; those of
// gompfs/search/query.py are the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/pattern/pcre_text.h"

namespace gompfs::search {

struct PatternOptions {
    std::vector<std::string> patterns;
    bool fixed_strings = false;  // patterns are literals
    bool ignore_case = false;
    bool smart_case = false;   // ignores case unless a pattern has an uppercase letter
    bool word_regexp = false;  // a match must not have a word character next to it
    bool line_regexp = false;  // a match must be a whole line
    bool multiline = false;
    bool pcre2 = false;  // patterns have the syntax of PCRE2
    bool crlf = false;   // lines may end with a carriage return and a line feed
    std::optional<std::string> replace;

    // Calls visit(name, member) for each option.
    template <typename Visit>
    void for_each(const Visit& visit) {
        visit("patterns", patterns);
        visit("fixed_strings", fixed_strings);
        visit("ignore_case", ignore_case);
        visit("smart_case", smart_case);
        visit("word_regexp", word_regexp);
        visit("line_regexp", line_regexp);
        visit("multiline", multiline);
        visit("pcre2", pcre2);
        visit("crlf", crlf);
        visit("replace", replace);
    }

    MatchBounds bounds() const {
        return line_regexp   ? MatchBounds::lines
               : word_regexp ? MatchBounds::words
                             : MatchBounds::any;
    }
    bool is_pcre() const { return pcre2 && !fixed_strings; }
};

}  // namespace gompfs::search

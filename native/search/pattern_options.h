// What a search looks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/pcre_text.h"

namespace gompfs::search {

struct PatternOptions {
    std::vector<std::string> patterns;
    bool is_fixed = false;  // patterns are literals
    bool is_pcre = false;   // patterns have the syntax of PCRE2
    bool is_crlf = false;   // lines may end with a carriage return and a line feed
    bool is_caseless = false;
    bool is_smart_case = false;  // caseless unless a pattern has an uppercase letter
    MatchBounds bounds = MatchBounds::any;
    bool is_multi_line = false;
    bool dot_takes_newline = false;
    bool is_unicode = true;
    std::optional<std::string> replacement;
};

}  // namespace gompfs::search

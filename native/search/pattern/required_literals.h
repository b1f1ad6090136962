// Finds literals that every match of a pattern contains. They decide which parts of an archive and
// which lines have to be searched; if in doubt, there are none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {

// Every match contains one of these strings. In a caseless set they are in lower case, and match
// ASCII letters of both cases; k and s then also match the Kelvin sign and the long s, which are
// the only characters outside of ASCII that fold to ASCII.
struct LiteralSet {
    std::vector<std::string> literals;  // none of them empty
    bool is_caseless = false;

    std::size_t shortest() const;
    bool has_unicode_case() const;
};

struct RequiredLiterals {
    std::vector<LiteralSet> sets;  // each of them is required
    // Whether a match is just one of the literals of the only set, but for assertions and case.
    bool is_exact = false;
    bool is_whole = false;  // whether it is one of them in every respect

    // The set with the longest literals, or null.
    const LiteralSet* best() const;
};

RequiredLiterals find_required_literals(const Node& pattern);

}  // namespace gompfs::search

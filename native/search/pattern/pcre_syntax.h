// Patterns that are given in the syntax of PCRE2 (-P): they are not parsed, but joined as ripgrep
// joins them.
#pragma once

#include <string>

#include "search/pattern/pattern_options.h"
#include "search/pattern/pcre_text.h"

namespace gompfs::search {

// All patterns as one, with what must surround a match. Throws PatternError.
PcreText join_pcre(const PatternOptions& options);

// Whether the parser of ripgrep's other syntax understands a pattern, if it accepts it at all, as
// PCRE2 does.
bool means_the_same(const std::string& pattern);

}  // namespace gompfs::search

// The grammar builder `sequitur`, which TADOC uses: the algorithm of Nevill-Manning and Witten,
// "Identifying hierarchical structure in sequences", J. Artificial Intelligence Research 7, 1997.
#pragma once

#include <vector>

#include "text/symbols.h"

namespace gompfs {

// Builds a grammar of `symbols` (words below num_words, and splitters).
Rules build_sequitur(const std::vector<Symbol>& symbols, std::uint32_t num_words);

}  // namespace gompfs

// The builder `sequitur`: the algorithm of Nevill-Manning and Witten, which TADOC uses.
#pragma once

#include <vector>

#include "grammar/symbols.h"

namespace gompfs {

// A grammar of `symbols` (words below num_words, and splitters). It reads them one by one and keeps
// two properties: no digram occurs twice, and every rule but the root is used at least twice.
Rules build_sequitur(const std::vector<Symbol>& symbols, std::uint32_t num_words);

}  // namespace gompfs

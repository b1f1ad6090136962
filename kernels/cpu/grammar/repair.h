// The builder `repair`: batch Re-Pair.
#pragma once

#include <vector>

#include "grammar/symbols.h"

namespace gompfs {

// A grammar of `symbols` (words below num_words, and splitters, which no rule but the root may hold).
//
// Each round counts all digrams, chooses occurrences that are locally the most frequent and do not overlap,
// and puts a rule in the place of every digram that was chosen twice or more. Many digrams are replaced in
// one round, so that a few passes over the symbols suffice; plain Re-Pair needs one for each rule.
Rules build_repair(std::vector<Symbol> symbols, std::uint32_t num_words);

}  // namespace gompfs

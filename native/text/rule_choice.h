// Chooses the rules of a grammar by the bits that they take.
#pragma once

#include <cstdint>

#include "text/symbols.h"

namespace gompfs {

// Returns rules for the same text, written with the symbols that take the fewest bits. Rules that
// save none are gone. Rule 0 is the root, and a rule uses rules of higher numbers only.
Rules choose_rules(const Rules& rules, std::uint32_t num_tokens);

}  // namespace gompfs

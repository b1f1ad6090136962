// Splits rules that stand for more bytes than a rule of a head should.
#pragma once

#include <cstdint>
#include <vector>

#include "text/symbols.h"

namespace gompfs {

// Rules that stand for more bytes save next to nothing, and make the pool large.
constexpr std::uint32_t kMaxRuleSize = 8192;

// Returns rules for the same text, of which only the root stands for more than kMaxRuleSize bytes,
// or contains a token that does. `token_sizes` has the bytes of each token. What several versions
// of a file share is one long rule; its users now share the rules into which it was split.
Rules split_long_rules(Rules rules, const std::vector<std::uint32_t>& token_sizes);

}  // namespace gompfs

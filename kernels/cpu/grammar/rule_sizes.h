// How much text the rules of a part stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// How many words each rule of a part stands for; kMaxTokens where it is too many.
std::vector<std::uint64_t> rule_sizes(const Part& part);

// How many words each file of a part has.
std::vector<std::uint64_t> file_sizes(const Part& part);

}  // namespace gompfs

// How much text the rules of a part stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// The number of words that each rule of a part stands for, at most kMaxTokens.
std::vector<std::uint64_t> rule_sizes(const Part& part);

// The number of words of each file of a part.
std::vector<std::uint64_t> file_sizes(const Part& part);

}  // namespace gompfs

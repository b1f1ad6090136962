// Analytics by traversal of the grammar.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// How many words each rule of a part stands for; kMaxTokens where it is too many.
std::vector<std::uint64_t> rule_sizes(const Part& part);

// How many words each file of a part has.
std::vector<std::uint64_t> file_sizes(const Part& part);

// How often each word of the dictionary occurs. Top-down (TADOC): a rule's weight is how often it
// occurs in the text; rules are visited in an order that has every use before the rule, so each is
// visited once. Files whose numbers are in excluded_inos (ascending) do not count.
std::vector<std::uint64_t> word_counts(const Grammar& grammar,
                                       const std::vector<std::uint64_t>& excluded_inos,
                                       unsigned num_threads);

}  // namespace gompfs

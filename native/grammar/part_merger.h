// Merges the dictionaries of parts that were built one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/part_builder.h"
#include "grammar/word_list.h"

namespace gompfs {

// Returns the pieces of the grammar section of the parts, in order.
std::vector<std::vector<std::uint8_t>> merge_to_section(std::vector<BuiltPart> parts,
                                                        BuilderKind builder, WordRule word_rule,
                                                        unsigned num_threads);

// Returns the grammar of parts of the kind `none`.
Grammar merge_to_grammar(std::vector<BuiltPart> parts, WordRule word_rule, unsigned num_threads);

// Returns all words of the ranges of a dictionary.
Dictionary expand_ranges(std::vector<DictionaryRange> ranges, unsigned num_threads);

}  // namespace gompfs

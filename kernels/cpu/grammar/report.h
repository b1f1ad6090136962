// Results as the text of virtual files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// Counts of the words of one dictionary.
struct WordCounts {
    const Dictionary* dictionary;
    const std::vector<std::uint64_t>* counts;
};

// Lines `word<TAB>count` of all that occur, counts of equal words added up: in byte order of the
// words, or by falling count and then word.
std::string word_count_report(const std::vector<WordCounts>& parts, bool by_count);

}  // namespace gompfs

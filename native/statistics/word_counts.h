// Word counts of grammars by traversal (TADOC; Zhang et al., VLDB 2018).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/large_vector.h"
#include "statistics/counted_files.h"
#include "statistics/counted_words.h"
#include "statistics/vocabulary.h"
#include "text/grammar.h"

namespace gompfs {

using WordCounts = ZeroVector<std::uint64_t>;  // by word of a dictionary

// Counts how often each word of the dictionary occurs. The traversal is top-down: the weight of a
// rule is the number of times it occurs in the text. Rules are visited in an order in which every
// use of a rule comes before the rule, so each rule is visited once.
WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads);

// The words of several dictionaries. Counts of equal words are added.
class GrammarWordCounts : public CountedWords {
  public:
    // `counts` has the counts of each dictionary's words, by number. The dictionaries must outlive
    // the object. Throws std::invalid_argument if a dictionary does not have a count for each word,
    // or if there are 2^62 words or more.
    GrammarWordCounts(const std::vector<const Dictionary*>& dictionaries,
                      const std::vector<std::span<const std::uint64_t>>& counts,
                      unsigned num_threads);

    std::string_view word(std::uint32_t number) const override { return words_.word(number); }

  private:
    const Vocabulary words_;
};

}  // namespace gompfs

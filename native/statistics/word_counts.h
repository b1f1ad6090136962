// Word counts by traversal of the grammar (TADOC; Zhang et al., VLDB 2018).
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "common/large_vector.h"
#include "grammar/grammar.h"
#include "grammar/section_reader.h"
#include "statistics/counted_files.h"

namespace gompfs {

using WordCounts = ZeroVector<std::uint64_t>;  // by word of a dictionary

// Counts how often each word of the dictionary occurs. The traversal is top-down: the weight of a
// rule is the number of times it occurs in the text. Rules are visited in an order in which every
// use of a rule comes before the rule, so each rule is visited once.
WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads);

// The words of a section and their counts, counted while the section is read. The parts are not
// kept, and the words stay as they are stored. The section's bytes must outlive the object. Throws
// std::invalid_argument if the section is damaged.
class CountedSection {
  public:
    CountedSection(std::span<const std::uint8_t> section, const CountedFiles& files,
                   unsigned num_threads);

    WordRule word_rule() const { return section_.word_rule(); }
    const SectionWords& words() const { return section_.words(); }
    const WordCounts& counts() const { return counts_; }
    // The words as a dictionary, expanded by the first call.
    const Dictionary& dictionary(unsigned num_threads) const;

  private:
    GrammarSection section_;
    WordCounts counts_;
    mutable std::once_flag is_expanded_;
    mutable Dictionary dictionary_;
};

}  // namespace gompfs

// Word counts of text that is stored in parts, without the grammar of the whole segment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/tokenizer.h"
#include "parts/parts_grammar.h"
#include "parts/word_section.h"
#include "statistics/counted_files.h"

namespace gompfs {

// The words of a segment, in no particular order, and how often each occurs. A word that several
// parts use is in the section of words, so no word is here twice.
class PartsWordCounts {
  public:
    // See read_parts_grammar. Throws std::invalid_argument if a part is damaged, or if there are
    // 2^62 words or more.
    PartsWordCounts(std::span<const StoredPart> parts, std::span<const TextExtent> extents,
                    Bytes word_section, std::uint64_t max_word_bytes, const Tokenizer& tokenizer,
                    const CountedFiles& files, unsigned num_threads);

    std::uint32_t num_words() const { return static_cast<std::uint32_t>(counts_.size()); }
    std::uint64_t count(std::uint32_t number) const { return counts_[number]; }
    std::string_view word(std::uint32_t number) const;

  private:
    void add_loose_words(const std::map<std::string, std::uint64_t, std::less<>>& loose,
                         std::vector<std::vector<std::uint64_t>>& local);
    void join_counts(std::vector<std::uint64_t> shared,
                     std::vector<std::vector<std::uint64_t>> local);

    WordSection section_;
    // Words of the section have the lowest numbers; then come those of the parts, in order.
    std::vector<TokenList> local_words_;        // by part
    std::vector<std::uint32_t> first_numbers_;  // of each part; then the number of words
    std::vector<std::uint64_t> counts_;
};

}  // namespace gompfs

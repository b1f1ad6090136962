// Word counts of text that is stored in parts, without the grammar of the whole segment.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "statistics/counted_files.h"
#include "statistics/counted_words.h"
#include "text/segment_grammar.h"
#include "text/stored_parts.h"
#include "text/tokenizer.h"
#include "text/word_section.h"

namespace gompfs {

// The words of a segment, and how often each occurs. A word that several
// parts use is in the section of words, so no word is here twice if the archive conforms to the
// format; to merge words that are would take longer than to count them.
class PartsWordCounts : public CountedWords {
  public:
    // See read_segment_grammar. Throws what that throws, and std::invalid_argument if there are
    // 2^62 words or more.
    PartsWordCounts(const StoredParts& parts, std::span<const TextExtent> extents,
                    Bytes word_section, std::uint64_t max_word_bytes, const Tokenizer& tokenizer,
                    const CountedFiles& files, unsigned num_threads);

    std::string_view word(std::uint32_t number) const override;
    // Throws std::invalid_argument if a word is stored twice, which the counts do not show.
    void check_that_words_differ() const;

  private:
    class Counter;

    void join_counts(std::vector<std::vector<std::uint64_t>> counts, unsigned num_threads);

    WordSection section_;
    // Words of the section have the lowest numbers; then come those of the parts, in order.
    std::vector<TokenList> local_words_;        // by part
    std::vector<std::uint32_t> first_numbers_;  // of each part; then the number of words
    // The part of every kHintStep-th word; 0 for words of the section.
    static constexpr std::uint32_t kHintStep = 256;
    std::vector<std::uint32_t> parts_of_words_;
};

}  // namespace gompfs

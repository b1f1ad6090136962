// The dictionary as a grammar section stores it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/numbers.h"
#include "grammar/section_cursor.h"

namespace gompfs {

// Words without the prefixes that they share with the word before, in ranges of which the first
// word shares nothing. Ranges are independent of each other: each is either checked or expanded, by
// any thread. The section's bytes must stay. All throw std::invalid_argument for what is wrong.
class SectionWords {
  public:
    // Finds the ranges at the place of the cursor, which goes on behind the words.
    SectionWords(SectionCursor& in, std::uint32_t num_words, unsigned num_threads);

    std::uint32_t size() const { return num_words_; }
    std::size_t num_ranges() const { return ranges_.size(); }

    // Checks the order of a range's words, and remembers where some of them are, for word().
    void check(std::size_t range);
    // Checks it, and makes its words a part of the dictionary that room() gave.
    void expand(std::size_t range, Dictionary& dictionary) const;
    Dictionary room() const;

    // One word, when its range has been checked; it takes some 100 ns.
    std::string word(std::uint32_t number) const;
    // Calls take(number, size in bytes) for each word of a range.
    template <typename Take>
    void for_each_size(std::size_t range, Take&& take) const;

  private:
    // A word from which on others are found: the prefix that it shares, and where its length and
    // its rest are.
    struct Anchor {
        std::uint32_t prefix;  // behind that of the anchor before, in the prefixes of the range
        std::uint32_t rest_length;
        std::uint64_t rest;
    };
    static constexpr std::uint32_t kWordsOfAnchor = 64;

    struct Range {
        std::uint32_t first = 0;
        std::span<const std::uint8_t> shared_lengths;
        std::span<const std::uint8_t> rest_lengths;  // numbers
        std::uint64_t rest_size = 0;                 // of the words, without what they share
        std::uint64_t size = 0;                      // and with it
        const std::uint8_t* rests = nullptr;
        std::uint64_t start = 0;  // in the bytes of the dictionary
        std::vector<Anchor> anchors;
        std::string prefixes;
    };

    void measure(Range& range, std::uint64_t max_size) const;
    void check_end(std::size_t range, std::string_view last_word) const;

    std::uint32_t num_words_;
    std::vector<Range> ranges_;
};

template <typename Take>
void SectionWords::for_each_size(std::size_t range, Take&& take) const {
    const std::uint8_t* length = ranges_[range].rest_lengths.data();
    std::uint32_t number = ranges_[range].first;
    for (const std::uint8_t shared : ranges_[range].shared_lengths) {
        take(number++, shared + read_number(length));
    }
}

}  // namespace gompfs

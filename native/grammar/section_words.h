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

// The words of a section, each stored as the length of the prefix shared with the word before and
// the rest. They are divided into ranges whose first word shares nothing, so ranges are independent
// and any thread may check or expand a range. The section's bytes must outlive the object. All
// functions throw std::invalid_argument for invalid data.
class SectionWords {
  public:
    // Finds the ranges at the cursor's position, and advances the cursor past the words.
    SectionWords(SectionCursor& in, std::uint32_t num_words, unsigned num_threads);

    std::uint32_t size() const { return num_words_; }
    std::size_t num_ranges() const { return ranges_.size(); }

    // Checks the order of a range's words, and records anchors for word().
    void check(std::size_t range);
    // Checks a range and writes its words to their positions in `dictionary`, which
    // empty_dictionary() made.
    void expand(std::size_t range, Dictionary& dictionary) const;
    Dictionary empty_dictionary() const;

    // Returns one word of a range that was checked; takes about 100 ns.
    std::string word(std::uint32_t number) const;
    // Calls take(number, size in bytes) for each word of a range.
    template <typename Take>
    void for_each_size(std::size_t range, Take&& take) const;

  private:
    // A word from which the following words can be found: the shared prefix, and the positions of
    // its length and its rest.
    struct Anchor {
        std::uint32_t prefix;  // start of the prefix in Range::prefixes; it ends at the next anchor
        std::uint32_t rest_length;
        std::uint64_t rest;
    };
    static constexpr std::uint32_t kWordsOfAnchor = 64;

    struct Range {
        std::uint32_t first = 0;
        std::span<const std::uint8_t> shared_lengths;
        std::span<const std::uint8_t> rest_lengths;  // variable-length numbers
        std::uint64_t rest_size = 0;  // size of all words without their shared prefixes
        std::uint64_t size = 0;       // size of all words with their shared prefixes
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

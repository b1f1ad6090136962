// Cutting text into words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gompfs {

// What a word is: a maximal run of bytes other than ASCII whitespace, or of characters that a bitmap of
// all code points marks (bytes that are no UTF-8 stand between words).
class Tokenizer {
   public:
    // An empty bitmap selects the whitespace rule; else it has a bit per code point, lowest bit first.
    explicit Tokenizer(std::vector<std::uint8_t> word_characters);

    // Cuts the next word off the front of text; an empty one when no more is there.
    std::string_view next(std::string_view& text) const;

    // The length of the longest prefix of text behind which a word cannot go on; 0 where none is known.
    std::size_t complete_prefix(std::string_view text) const;

   private:
    std::string_view next_between_whitespace(std::string_view& text) const;
    std::string_view next_of_characters(std::string_view& text) const;
    std::size_t word_character(std::string_view text, std::size_t at) const;

    std::vector<std::uint8_t> word_characters_;
};

}  // namespace gompfs

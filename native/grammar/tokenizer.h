// Cuts text into words.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gompfs {

// A word is a maximal run of bytes other than ASCII whitespace or, if a bitmap of characters is
// given, a maximal run of characters whose bit is set. Bytes that are not valid UTF-8 then separate
// words.
class Tokenizer {
  public:
    // An empty bitmap selects the whitespace rule. Otherwise the bitmap has a bit per code point,
    // lowest bit first.
    explicit Tokenizer(std::vector<std::uint8_t> word_characters);

    // Calls take(word) for every word of a text, in order.
    template <typename Take>
    void for_each_word(std::string_view text, Take&& take) const {
        word_characters_.empty() ? between_whitespace(text, take) : of_characters(text, take);
    }

    // The length of the longest prefix after which no word can continue; 0 if there is none.
    std::size_t complete_prefix(std::string_view text) const;

  private:
    template <typename Take>
    static void between_whitespace(std::string_view text, Take&& take);
    template <typename Take>
    void of_characters(std::string_view text, Take&& take) const;
    std::size_t word_character(std::string_view text, std::size_t at) const;

    std::vector<std::uint8_t> word_characters_;
};

// Bit i of the result says whether byte i of 64 bytes is whitespace.
std::uint64_t whitespace_bits(const char* bytes);

// Whether a text contains whitespace.
bool has_whitespace(std::string_view text);

// As whitespace_bits, for the 64 bytes of a text from `offset` on; bytes after its end count as
// whitespace.
inline std::uint64_t whitespace_bits_at(std::string_view text, std::size_t offset) {
    char last[64];
    const char* bytes = text.data() + offset;
    if (text.size() - offset < sizeof last) {
        std::memset(last, ' ', sizeof last);
        bytes = static_cast<const char*>(std::memcpy(last, bytes, text.size() - offset));
    }
    return whitespace_bits(bytes);
}

template <typename Take>
void Tokenizer::between_whitespace(std::string_view text, Take&& take) {
    constexpr std::size_t kStep = 64;
    const char* const start = text.data();
    std::size_t word_start = 0;
    bool in_word = false;
    for (std::size_t base = 0; base < text.size(); base += kStep) {
        const std::uint64_t spaces = whitespace_bits_at(text, base);
        // Bits where a word starts or ends: the byte differs in kind from the previous byte.
        std::uint64_t changes = spaces ^ (spaces << 1 | (in_word ? 0 : 1));
        for (; changes != 0; changes &= changes - 1) {
            const std::size_t at = base + std::countr_zero(changes);
            if (in_word) {
                take(std::string_view(start + word_start, at - word_start));
            }
            word_start = at;
            in_word = !in_word;
        }
    }
    if (in_word) {
        take(text.substr(word_start));
    }
}

template <typename Take>
void Tokenizer::of_characters(std::string_view text, Take&& take) const {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t start = at;
        for (std::size_t length; at < text.size() && (length = word_character(text, at)) != 0;) {
            at += length;
        }
        if (at != start) {
            take(text.substr(start, at - start));
        } else {
            ++at;
        }
    }
}

}  // namespace gompfs

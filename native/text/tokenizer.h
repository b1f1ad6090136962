// Cuts text into words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/word_rule.h"

namespace gompfs {

class Tokenizer {
  public:
    // The rule `letters` needs a bitmap of the characters of words, with a bit per code point,
    // lowest bit first, which agrees with is_separator on ASCII characters. Bytes that are not
    // valid UTF-8 then separate words. Other rules take an empty bitmap. Throws
    // std::invalid_argument if the bitmap is missing or superfluous.
    Tokenizer(WordRule rule, std::vector<std::uint8_t> word_characters);

    WordRule rule() const { return rule_; }

    // Calls take(word) for every word of a text, in order.
    template <typename Take>
    void for_each_word(std::string_view text, Take&& take) const;

    // Whether a word begins at a position of a text, after a byte that separates words whatever is
    // around it. The text can be cut there, and no token is cut.
    bool begins_word(std::string_view text, std::size_t at) const;
    // The first such position from `from` on, or the size of the text if there is none.
    std::size_t next_word_start(std::string_view text, std::size_t from) const;

  private:
    template <WordRule kRule, typename Take>
    static void between_separators(std::string_view text, Take&& take);
    template <typename Take>
    void of_characters(std::string_view text, Take&& take) const;
    std::size_t word_character(std::string_view text, std::size_t at) const;

    WordRule rule_;
    std::vector<std::uint8_t> word_characters_;
};

template <typename Take>
void Tokenizer::for_each_word(std::string_view text, Take&& take) const {
    switch (rule_) {
        case WordRule::whitespace:
            return between_separators<WordRule::whitespace>(text, take);
        case WordRule::letters:
            return of_characters(text, take);
        case WordRule::identifiers:
            return between_separators<WordRule::identifiers>(text, take);
    }
}

// For the rules whose words are all the bytes between separators.
template <WordRule kRule, typename Take>
void Tokenizer::between_separators(std::string_view text, Take&& take) {
    constexpr std::size_t kStep = 64;
    const char* const start = text.data();
    std::size_t word_start = 0;
    bool in_word = false;
    for (std::size_t base = 0; base < text.size(); base += kStep) {
        const std::uint64_t separators = separator_bits_at<kRule>(text, base);
        // Bits where a word starts or ends: the byte differs in kind from the previous byte.
        std::uint64_t changes = separators ^ (separators << 1 | (in_word ? 0 : 1));
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

// Implements the word rules; see tokenizer.h. Separators are found 64 bytes at a time with SSE2
// (word_rule.h). Characters are decoded strictly: overlong forms, surrogates and code points above
// 0x10ffff are not valid UTF-8.
#include "text/tokenizer.h"

#include <stdexcept>
#include <utility>

namespace gompfs {
namespace {

// One UTF-8 character; length is 0 if the bytes are not valid.
struct Character {
    std::uint32_t code_point;
    std::size_t length;
};

Character decode_utf8(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t index) {
        return static_cast<unsigned char>(text[at + index]);
    };
    const unsigned first = byte(0);
    if (first < 0x80) {
        return {first, 1};
    }
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() - at < length) {
        return {0, 0};
    }
    std::uint32_t code_point = first & (0xff >> (length + 1));
    for (std::size_t index = 1; index < length; ++index) {
        if ((byte(index) & 0xc0) != 0x80) {
            return {0, 0};
        }
        code_point = code_point << 6 | (byte(index) & 0x3f);
    }
    constexpr std::uint32_t kLeastOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
    if (code_point < kLeastOfLength[length] || code_point > 0x10ffff || surrogate) {
        return {0, 0};
    }
    return {code_point, length};
}

}  // namespace

Tokenizer::Tokenizer(WordRule rule, std::vector<std::uint8_t> word_characters)
    : rule_(rule), word_characters_(std::move(word_characters)) {
    if ((rule == WordRule::letters) == word_characters_.empty()) {
        throw std::invalid_argument("the bitmap of characters does not fit the word rule");
    }
}

// The length of the word character at a position; 0 if there is none.
std::size_t Tokenizer::word_character(std::string_view text, std::size_t at) const {
    const auto [code_point, length] = decode_utf8(text, at);
    if (length == 0 || code_point / 8 >= word_characters_.size()) {
        return 0;
    }
    return (word_characters_[code_point / 8] >> (code_point % 8) & 1) != 0 ? length : 0;
}

bool Tokenizer::begins_word(std::string_view text, std::size_t at) const {
    if (at == 0 || at >= text.size() || !is_separator(rule_, text[at - 1])) {
        return false;
    }
    return rule_ == WordRule::letters ? word_character(text, at) != 0
                                      : !is_separator(rule_, text[at]);
}

std::size_t Tokenizer::next_word_start(std::string_view text, std::size_t from) const {
    while (from < text.size() && !begins_word(text, from)) {
        ++from;
    }
    return from;
}

}  // namespace gompfs

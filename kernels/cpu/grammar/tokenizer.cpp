#include "grammar/tokenizer.h"

#include <array>

namespace gompfs {
namespace {

constexpr std::array<bool, 256> whitespace_table() {
    std::array<bool, 256> table{};
    for (const unsigned char space : {' ', '\t', '\n', '\v', '\f', '\r'}) {
        table[space] = true;
    }
    return table;
}

constexpr std::array<bool, 256> kIsWhitespace = whitespace_table();

bool is_whitespace(char byte) { return kIsWhitespace[static_cast<unsigned char>(byte)]; }

// One character of UTF-8; length 0 where the bytes are none.
struct Character {
    std::uint32_t code_point;
    std::size_t length;
};

Character decode_utf8(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[at + index]); };
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

Tokenizer::Tokenizer(std::vector<std::uint8_t> word_characters)
    : word_characters_(std::move(word_characters)) {}

std::string_view Tokenizer::next(std::string_view& text) const {
    return word_characters_.empty() ? next_between_whitespace(text) : next_of_characters(text);
}

std::string_view Tokenizer::next_between_whitespace(std::string_view& text) const {
    const char* const end = text.data() + text.size();
    const char* start = text.data();
    while (start != end && is_whitespace(*start)) {
        ++start;
    }
    const char* stop = start;
    while (stop != end && !is_whitespace(*stop)) {
        ++stop;
    }
    text = {stop, static_cast<std::size_t>(end - stop)};
    return {start, static_cast<std::size_t>(stop - start)};
}

// The length of the word character at a position; 0 where there is none.
std::size_t Tokenizer::word_character(std::string_view text, std::size_t at) const {
    const auto [code_point, length] = decode_utf8(text, at);
    if (length == 0 || code_point / 8 >= word_characters_.size()) {
        return 0;
    }
    return (word_characters_[code_point / 8] >> (code_point % 8) & 1) != 0 ? length : 0;
}

std::string_view Tokenizer::next_of_characters(std::string_view& text) const {
    std::size_t start = 0;
    while (start < text.size() && word_character(text, start) == 0) {
        ++start;
    }
    std::size_t stop = start;
    while (stop < text.size()) {
        const std::size_t length = word_character(text, stop);
        if (length == 0) {
            break;
        }
        stop += length;
    }
    const std::string_view word = text.substr(start, stop - start);
    text.remove_prefix(stop);
    return word;
}

std::size_t Tokenizer::complete_prefix(std::string_view text) const {
    std::size_t size = text.size();
    while (size != 0 && !is_whitespace(text[size - 1])) {
        --size;
    }
    return size;
}

}  // namespace gompfs

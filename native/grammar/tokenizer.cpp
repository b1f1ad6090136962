// Implements both word rules; see tokenizer.h. Whitespace is found 64 bytes at a time with SSE2.
// Characters are decoded strictly: overlong forms, surrogates and code points above 0x10ffff are
// not valid UTF-8. kernels/statistics/words.cu must give the same words.
#include "grammar/tokenizer.h"

#include <array>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

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

Tokenizer::Tokenizer(std::vector<std::uint8_t> word_characters)
    : word_characters_(std::move(word_characters)) {}

std::uint64_t whitespace_bits(const char* bytes) {
    std::uint64_t bits = 0;
#if defined(__SSE2__)
    for (int part = 0; part < 4; ++part) {
        const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + part);
        // '\t' to '\r' are five consecutive values: a byte is among them if it is at most 4 after
        // '\t' is subtracted.
        const __m128i shifted = _mm_sub_epi8(chunk, _mm_set1_epi8('\t'));
        const __m128i controls =
            _mm_cmpeq_epi8(_mm_min_epu8(shifted, _mm_set1_epi8('\r' - '\t')), shifted);
        const __m128i spaces = _mm_cmpeq_epi8(chunk, _mm_set1_epi8(' '));
        const auto mask =
            static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(controls, spaces)));
        bits |= std::uint64_t{mask} << (16 * part);
    }
#else
    for (int index = 0; index < 64; ++index) {
        bits |= std::uint64_t{is_whitespace(bytes[index])} << index;
    }
#endif
    return bits;
}

bool has_whitespace(std::string_view text) {
    std::size_t offset = 0;
    for (; text.size() - offset >= 64; offset += 64) {
        if (whitespace_bits(text.data() + offset) != 0) {
            return true;
        }
    }
    return std::any_of(text.begin() + static_cast<std::ptrdiff_t>(offset), text.end(),
                       is_whitespace);
}

// The length of the word character at a position; 0 if there is none.
std::size_t Tokenizer::word_character(std::string_view text, std::size_t at) const {
    const auto [code_point, length] = decode_utf8(text, at);
    if (length == 0 || code_point / 8 >= word_characters_.size()) {
        return 0;
    }
    return (word_characters_[code_point / 8] >> (code_point % 8) & 1) != 0 ? length : 0;
}

std::size_t Tokenizer::complete_prefix(std::string_view text) const {
    std::size_t size = text.size();
    while (size != 0 && !is_whitespace(text[size - 1])) {
        --size;
    }
    return size;
}

}  // namespace gompfs

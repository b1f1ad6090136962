// The word rules, and the bytes that separate words whatever is around them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>

#endif

namespace gompfs {

// What a word is. Sections store these numbers.
enum class WordRule : std::uint8_t {
    whitespace = 0,   // a maximal run of bytes other than ASCII whitespace
    letters = 1,      // a maximal run of UTF-8 characters of a set: letters, digits and apostrophes
    identifiers = 2,  // a maximal run of ASCII letters, ASCII digits, '_' and bytes from 0x80 on
};

// Whether a byte belongs to no word, whatever is before and after it. Text can be cut there. These
// are ASCII characters: under the rule `letters`, other bytes may or may not be part of a word.
constexpr bool is_separator(WordRule rule, char byte) {
    const auto code = static_cast<unsigned char>(byte);
    if (rule == WordRule::whitespace) {
        return code == ' ' || (code >= '\t' && code <= '\r');
    }
    const auto lower = static_cast<unsigned char>(code | 0x20);
    const bool is_alphanumeric = (lower >= 'a' && lower <= 'z') || (code >= '0' && code <= '9');
    return code < 0x80 && !is_alphanumeric && code != (rule == WordRule::letters ? '\'' : '_');
}

#if defined(__SSE2__)
// Bytes of 0xff where the bytes of a chunk are in a range of ASCII characters. Adding moves the
// range to the highest values that a signed byte can have.
inline __m128i are_between(__m128i chunk, char first, char last) {
    const __m128i moved = _mm_add_epi8(chunk, _mm_set1_epi8(static_cast<char>(0x7f - last)));
    return _mm_cmpgt_epi8(moved, _mm_set1_epi8(static_cast<char>(0x7e - (last - first))));
}

// Bit i of the result says whether byte i of 16 bytes is a separator.
template <WordRule kRule>
std::uint32_t separator_bits_of(__m128i chunk) {
    if constexpr (kRule == WordRule::whitespace) {
        const __m128i spaces = _mm_cmpeq_epi8(chunk, _mm_set1_epi8(' '));
        return static_cast<std::uint32_t>(
            _mm_movemask_epi8(_mm_or_si128(are_between(chunk, '\t', '\r'), spaces)));
    } else {
        constexpr char kOther = kRule == WordRule::letters ? '\'' : '_';
        const __m128i lower = _mm_or_si128(chunk, _mm_set1_epi8(0x20));
        const __m128i alphanumeric =
            _mm_or_si128(are_between(lower, 'a', 'z'), are_between(chunk, '0', '9'));
        // The highest bit of a byte of `chunk` says that the byte is not ASCII.
        const __m128i others = _mm_or_si128(chunk, _mm_cmpeq_epi8(chunk, _mm_set1_epi8(kOther)));
        return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(alphanumeric, others))) ^
               0xffff;
    }
}
#endif

// Bit i of the result says whether byte i of 64 bytes is a separator.
template <WordRule kRule>
std::uint64_t separator_bits(const char* bytes) {
    std::uint64_t bits = 0;
#if defined(__SSE2__)
    for (int part = 0; part < 4; ++part) {
        const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + part);
        bits |= std::uint64_t{separator_bits_of<kRule>(chunk)} << (16 * part);
    }
#else
    for (int index = 0; index < 64; ++index) {
        bits |= std::uint64_t{is_separator(kRule, bytes[index])} << index;
    }
#endif
    return bits;
}

// As separator_bits, for the 64 bytes of a text from `offset` on; bytes after its end count as
// separators.
template <WordRule kRule>
std::uint64_t separator_bits_at(std::string_view text, std::size_t offset) {
    char last[64];
    const char* bytes = text.data() + offset;
    if (text.size() - offset < sizeof last) {
        std::memset(last, ' ', sizeof last);
        bytes = static_cast<const char*>(std::memcpy(last, bytes, text.size() - offset));
    }
    return separator_bits<kRule>(bytes);
}

}  // namespace gompfs

// UTF-8: one character at a time, and whether whole texts are UTF-8 or ASCII.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gompfs {

inline constexpr char32_t kMaxCodePoint = 0x10ffff;
inline constexpr char32_t kReplacement = 0xfffd;

inline bool is_surrogate(char32_t code) { return code >= 0xd800 && code <= 0xdfff; }

inline void append_utf8(std::string& text, char32_t code) {
    const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

struct DecodedCharacter {
    char32_t code;
    std::size_t size;  // in bytes; 0 if the bytes are not valid UTF-8
};

// The first character of a text that is not empty.
inline DecodedCharacter decode_utf8(std::string_view text) {
    const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
    const unsigned first = byte(0);
    if (first < 0x80) {
        return {first, 1};
    }
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) {
        return {kReplacement, 0};
    }
    char32_t code = first & (0xffu >> (size + 1));
    for (std::size_t index = 1; index < size; ++index) {
        if ((byte(index) & 0xc0) != 0x80) {
            return {kReplacement, 0};
        }
        code = code << 6 | (byte(index) & 0x3f);
    }
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[size] || code > kMaxCodePoint || is_surrogate(code)) {
        return {kReplacement, 0};
    }
    return {code, size};
}

inline bool is_valid_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t size = decode_utf8(text).size;
        if (size == 0) {
            return false;
        }
        text.remove_prefix(size);
    }
    return true;
}

inline bool is_ascii(std::string_view text) {
    std::size_t index = 0;
    constexpr std::uint64_t kHighBits = 0x8080808080808080;
    for (; index + 64 <= text.size(); index += 64) {
        std::uint64_t words[8];
        std::memcpy(words, text.data() + index, sizeof words);
        std::uint64_t bits = 0;
        for (const std::uint64_t word : words) {
            bits |= word;
        }
        if ((bits & kHighBits) != 0) {
            return false;
        }
    }
    for (; index < text.size(); ++index) {
        if (static_cast<unsigned char>(text[index]) >= 0x80) {
            return false;
        }
    }
    return true;
}

}  // namespace gompfs

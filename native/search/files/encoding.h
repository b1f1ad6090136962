// Byte order marks. As in ripgrep, a text with a mark of UTF-16 is searched as UTF-8, and a mark of
// UTF-8 is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/utf8.h"

namespace gompfs::search {

enum class Encoding { plain, utf8_mark, utf16_little, utf16_big };

inline constexpr std::size_t kMaxMark = 3;

// The encoding that the beginning of a file states.
inline Encoding encoding_of(std::string_view beginning) {
    return beginning.starts_with("\xef\xbb\xbf") ? Encoding::utf8_mark
           : beginning.starts_with("\xff\xfe")   ? Encoding::utf16_little
           : beginning.starts_with("\xfe\xff")   ? Encoding::utf16_big
                                                 : Encoding::plain;
}

// Turns UTF-16 into UTF-8, any number of bytes at a time. What is not valid becomes U+FFFD.
class Utf16Decoder {
  public:
    explicit Utf16Decoder(bool is_big_endian) : is_big_endian_(is_big_endian) {}

    void decode(std::string_view bytes, std::string& text) {
        for (const char byte : bytes) {
            const auto value = static_cast<unsigned char>(byte);
            if (!has_half_) {
                half_ = value;
                has_half_ = true;
                continue;
            }
            has_half_ = false;
            add_unit(is_big_endian_ ? half_ << 8 | value : value << 8 | half_, text);
        }
    }

    void finish(std::string& text) {
        if (has_half_ || high_ != 0) {
            append_utf8(text, kReplacement);
        }
    }

  private:
    void add_unit(unsigned unit, std::string& text) {
        const bool is_low = unit >= 0xdc00 && unit <= 0xdfff;
        if (high_ != 0) {
            const char32_t code = 0x10000 + ((high_ - 0xd800u) << 10) + (unit - 0xdc00u);
            append_utf8(text, is_low ? code : kReplacement);
            high_ = 0;
            if (is_low) {
                return;
            }
        }
        if (unit >= 0xd800 && unit < 0xdc00) {
            high_ = unit;
        } else {
            append_utf8(text, is_low ? kReplacement : static_cast<char32_t>(unit));
        }
    }

    const bool is_big_endian_;
    bool has_half_ = false;
    unsigned half_ = 0;
    unsigned high_ = 0;  // the first half of a surrogate pair
};

}  // namespace gompfs::search

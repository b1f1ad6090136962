// See json_text.h.
#include "common/json_text.h"

#include <cstdint>
#include <cstdio>

namespace gompfs {
namespace {

void append_escaped(std::string& output, char byte) {
    constexpr char kEscaped[] = "\"\\\b\f\n\r\t", kLetters[] = "\"\\bfnrt";
    const std::size_t index = std::string_view(kEscaped).find(byte);
    if (index != std::string_view::npos) {
        output.append({'\\', kLetters[index]});
        return;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
    output += escaped;
}

}  // namespace

void append_json_string(std::string& output, std::string_view text) {
    output += '"';
    append_json_characters(output, text);
    output += '"';
}

void append_json_characters(std::string& output, std::string_view text) {
    std::size_t plain = 0;  // start of the bytes that are not appended yet
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char byte = text[at];
        if (static_cast<unsigned char>(byte) >= 0x20 && byte != '"' && byte != '\\') {
            continue;
        }
        output.append(text.substr(plain, at - plain));
        append_escaped(output, byte);
        plain = at + 1;
    }
    output.append(text.substr(plain));
}

void append_base64(std::string& output, std::string_view bytes) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::string_view group = bytes.substr(at, 3);
        std::uint32_t bits = 0;
        for (std::size_t index = 0; index < 3; ++index) {
            bits =
                bits << 8 | (index < group.size() ? static_cast<unsigned char>(group[index]) : 0);
        }
        for (std::size_t index = 0; index < 4; ++index) {
            output += index <= group.size() ? kDigits[bits >> (18 - 6 * index) & 63] : '=';
        }
    }
}

}  // namespace gompfs

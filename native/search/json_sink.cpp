// Writes ripgrep's JSON Lines; see json_sink.h. The members have ripgrep's order.
#include "search/json_sink.h"

#include <cstdint>
#include <cstdio>
#include <utility>

#include "search/utf8.h"

namespace gompfs::search {
namespace {

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

void append_json_string(std::string& output, std::string_view text) {
    output += '"';
    for (const char byte : text) {
        switch (byte) {
            case '"':
                output += "\\\"";
                break;
            case '\\':
                output += "\\\\";
                break;
            case '\b':
                output += "\\b";
                break;
            case '\f':
                output += "\\f";
                break;
            case '\n':
                output += "\\n";
                break;
            case '\r':
                output += "\\r";
                break;
            case '\t':
                output += "\\t";
                break;
            default:
                if (static_cast<unsigned char>(byte) < 0x20) {
                    char escaped[8];
                    std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
                    output += escaped;
                } else {
                    output += byte;
                }
        }
    }
    output += '"';
}

}  // namespace

void append_json_bytes(std::string& output, std::string_view bytes) {
    if (is_valid_utf8(bytes)) {
        output += "{\"text\":";
        append_json_string(output, bytes);
    } else {
        output += "{\"bytes\":\"";
        append_base64(output, bytes);
        output += '"';
    }
    output += '}';
}

void JsonSink::begin_file(std::string_view path) {
    path_.clear();
    append_json_bytes(path_, path);
    output_ += R"({"type":"begin","data":{"path":)" + path_ + "}}\n";
}

void JsonSink::add_lines(std::string_view type, const FoundLines& lines) {
    output_ += R"({"type":")" + std::string(type) + R"(","data":{"path":)" + path_ + ",\"lines\":";
    append_json_bytes(output_, lines.bytes);
    output_ += ",\"line_number\":" + std::to_string(lines.line_number) +
               ",\"absolute_offset\":" + std::to_string(lines.file_offset) + ",\"submatches\":[";
    const char* separator = "";
    for (const auto [begin, end] : lines.matches) {
        output_ += std::exchange(separator, ",");
        output_ += "{\"match\":";
        append_json_bytes(output_, lines.bytes.substr(begin, end - begin));
        output_ += ",\"start\":" + std::to_string(begin) + ",\"end\":" + std::to_string(end) + '}';
    }
    output_ += "]}}\n";
}

void JsonSink::end_file(const FileCounts& counts) {
    output_ += R"({"type":"end","data":{"path":)" + path_ + ",\"binary_offset\":" +
               (counts.binary_offset ? std::to_string(*counts.binary_offset) : "null") +
               R"(,"stats":{"elapsed":{"secs":0,"nanos":0,"human":"0.000000s"},"searches":1,)"
               R"("searches_with_match":1,"bytes_searched":)" +
               std::to_string(counts.num_bytes) +
               ",\"bytes_printed\":" + std::to_string(output_.size()) +
               ",\"matched_lines\":" + std::to_string(counts.num_lines) +
               ",\"matches\":" + std::to_string(counts.num_matches) + "}}}\n";
}

std::string JsonSink::take_output() { return std::exchange(output_, {}); }

}  // namespace gompfs::search

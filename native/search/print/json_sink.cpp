// Writes ripgrep's JSON Lines; see json_sink.h. The members have ripgrep's order.
#include "search/print/json_sink.h"

#include <utility>

#include "common/json_text.h"
#include "common/utf8.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kPiece = 3 << 16;  // of whole groups in base64

}  // namespace

void append_json_bytes(std::string& output, std::string_view bytes,
                       const std::function<void()>& end_step) {
    const bool is_text = is_valid_utf8(bytes);
    output += is_text ? "{\"text\":\"" : "{\"bytes\":\"";
    const auto append = is_text ? append_json_characters : append_base64;
    for (; bytes.size() > kPiece; bytes.remove_prefix(kPiece)) {
        append(output, bytes.substr(0, kPiece));
        end_step();
    }
    append(output, bytes);
    output += "\"}";
}

void JsonSink::begin_file(std::string_view path) {
    begin_output_of_file();
    path_.clear();
    append_json_bytes(path_, path, [] {});
    output_ += R"({"type":"begin","data":{"path":)" + path_ + "}}\n";
}

void JsonSink::add_lines(std::string_view type, const FoundLines& lines) {
    output_ += R"({"type":")" + std::string(type) + R"(","data":{"path":)" + path_ + ",\"lines\":";
    append_json_bytes(output_, lines.bytes, [this] { end_step(); });
    output_ += ",\"line_number\":" +
               (options_.has_line_numbers() ? std::to_string(lines.line_number) : "null") +
               ",\"absolute_offset\":" + std::to_string(lines.file_offset) + ",\"submatches\":[";
    const char* separator = "";
    for (std::size_t index = 0; index < lines.matches.size(); ++index) {
        const auto [begin, end] = lines.matches[index];
        output_ += std::exchange(separator, ",");
        output_ += "{\"match\":";
        append_json_bytes(output_, lines.bytes.substr(begin, end - begin), [this] { end_step(); });
        if (index < lines.replacements.size()) {
            const auto [first, last] = lines.replacements[index];
            output_ += ",\"replacement\":";
            append_json_bytes(output_, lines.printed.substr(first, last - first),
                              [this] { end_step(); });
        }
        output_ += ",\"start\":" + std::to_string(begin) + ",\"end\":" + std::to_string(end) + '}';
        end_step();
    }
    output_ += "]}}\n";
    end_step();
}

void JsonSink::end_file(const FileCounts& counts) {
    output_ += R"({"type":"end","data":{"path":)" + path_ + ",\"binary_offset\":" +
               (counts.binary_offset ? std::to_string(*counts.binary_offset) : "null") +
               R"(,"stats":{"elapsed":{"secs":0,"nanos":0,"human":"0.000000s"},"searches":1,)"
               R"("searches_with_match":)" +
               (counts.num_matched_lines != 0 ? "1" : "0") +
               ",\"bytes_searched\":" + std::to_string(counts.num_bytes) +
               ",\"bytes_printed\":" + std::to_string(counts.num_bytes_printed) +
               ",\"matched_lines\":" + std::to_string(counts.num_lines) +
               ",\"matches\":" + std::to_string(counts.num_matches) + "}}}\n";
}

}  // namespace gompfs::search

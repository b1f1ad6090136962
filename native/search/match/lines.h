// Lines of a text: runs of bytes that end with a line feed, or at the end of the text.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace gompfs::search {

struct Line {
    std::size_t begin;
    std::size_t end;   // of its bytes, without the line feed
    std::size_t next;  // where the next line begins

    std::size_t size() const { return end - begin; }
};

// The line that begins at `begin`.
inline Line line_from(std::string_view text, std::size_t begin) {
    const void* const found = std::memchr(text.data() + begin, '\n', text.size() - begin);
    if (found == nullptr) {
        return {begin, text.size(), text.size()};
    }
    const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    return {begin, end, end + 1};
}

// The line that has the byte at `offset`.
inline Line line_at(std::string_view text, std::size_t offset) {
    const void* const found = memrchr(text.data(), '\n', offset);
    const std::size_t begin =
        found == nullptr
            ? 0
            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1;
    Line line = line_from(text, offset);
    line.begin = begin;
    return line;
}

// The line before the one that begins at `begin`, which is not 0.
inline Line line_before(std::string_view text, std::size_t begin) {
    return line_at(text, begin - 1);
}

std::size_t count_newlines(std::string_view text);

// The part of a text in which the matches in its first `size` bytes are found, which are lines. Of
// a single line, it is what comes before the line feed; with --crlf, before a carriage return and a
// line feed.
inline std::string_view matched_part(std::string_view text, std::size_t size, bool is_multi_line,
                                     bool is_crlf) {
    constexpr std::size_t kLookAhead = 128;  // as in ripgrep
    if (is_multi_line) {
        return text.substr(0, size + kLookAhead);
    }
    text = text.substr(0, size - (size != 0 && text[size - 1] == '\n' ? 1 : 0));
    return text.substr(
        0, text.size() - (is_crlf && text.size() < size && text.ends_with('\r') ? 1 : 0));
}

}  // namespace gompfs::search

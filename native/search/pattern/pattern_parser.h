// The reader of a pattern that both parts of the parser share, and the part that reads classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/utf8.h"
#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {

// Reads a pattern character by character.
class PatternReader {
  public:
    explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

    bool is_at_end() const { return offset_ == pattern_.size(); }
    bool looking_at(std::string_view text) const {
        return pattern_.substr(offset_).starts_with(text);
    }
    // Skips a text if it comes next.
    bool take(std::string_view text) {
        const bool is_next = looking_at(text);
        offset_ += is_next ? text.size() : 0;
        return is_next;
    }
    // The next character. Fails at the end, which `what` would not have reached.
    char32_t next(const char* what);
    char32_t peek() const { return is_at_end() ? 0 : decode_utf8(pattern_.substr(offset_)).code; }
    // Skips white space and comments.
    void skip_space();

    [[noreturn]] void fail(const std::string& reason) const;

  private:
    std::string_view pattern_;
    std::size_t offset_ = 0;
};

// What follows a backslash: a character, or a class such as \d.
struct Escape {
    std::optional<ClassItem> item;
    char32_t code = 0;
    bool is_byte = false;  // \xFF without Unicode
};

// Reads an escape after its backslash. `letter` is the character after the backslash.
Escape parse_escape(PatternReader& reader, char32_t letter, bool is_unicode);

// Reads a class after its opening bracket.
ClassSet parse_class(PatternReader& reader, const SyntaxFlags& flags, int depth = 0);

}  // namespace gompfs::search

// One column of index rows as text, as SQLite concatenates it: fields with a separator between
// them.
//
// The index is untrusted input: every field is checked, and the first impossible one throws
// std::invalid_argument.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace gompfs {

inline constexpr std::int64_t kMaxIndexInteger = std::numeric_limits<std::int64_t>::max();

[[noreturn]] inline void fail_index_entry() {
    throw std::invalid_argument("the index has an impossible entry");
}

// Reads the fields of one column in order.
class IndexColumn {
  public:
    IndexColumn(std::string_view text, char separator) : rest_(text), separator_(separator) {}

    bool is_at_end() const { return is_at_end_; }

    std::string_view next() {
        if (is_at_end_) {
            fail_index_entry();
        }
        const std::size_t end = rest_.find(separator_);
        const std::string_view field = rest_.substr(0, end);
        is_at_end_ = end == std::string_view::npos;
        rest_.remove_prefix(is_at_end_ ? rest_.size() : end + 1);
        return field;
    }

    std::int64_t next_number(std::int64_t least, std::int64_t most) {
        const std::string_view field = next();
        std::int64_t value = 0;
        const char* const end = field.data() + field.size();
        const auto [stop, error] = std::from_chars(field.data(), end, value);
        if (error != std::errc() || stop != end || value < least || value > most) {
            fail_index_entry();
        }
        return value;
    }

  private:
    std::string_view rest_;
    char separator_;
    bool is_at_end_ = false;
};

}  // namespace gompfs

// The columns of an index: the bytes that an archive stores for the rows of its tables.
//
// docs/format.md, section 3, describes them. A column of numbers stores 7 bits of each number in a
// byte, and then, for the numbers that are larger, the next 7 bits, and so on: the first bytes of
// all rows lie together, then the second bytes of the rows that have one. Bytes of one meaning side
// by side compress better than whole numbers. A column of strings ends each string with a NUL.
//
// Columns from an archive are untrusted input. The constructors check the structure of a column, so
// that taking a value from it cannot fail, except for values that are too large. Every row takes at
// least one byte of a column, so there are at most as many rows as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/growing_bytes.h"

namespace gompfs {

// The largest value of numbers that have no sign: SQLite stores numbers of 64 bits with a sign.
inline constexpr std::uint64_t kMaxIndexNumber = ~std::uint64_t{0} >> 1;

[[noreturn]] inline void fail_index(const std::string& what) { throw std::invalid_argument(what); }

// Reads a column of numbers of 64 bits.
class NumberColumn {
  public:
    // Throws std::invalid_argument unless the bytes hold num_rows numbers, in as few bytes as
    // possible.
    NumberColumn(Bytes bytes, std::uint64_t num_rows);

    // Returns the next number. Must be called at most num_rows times.
    std::uint64_t next() {
        const std::uint8_t first = *planes_[0]++;
        return first < 0x80 ? first : next_long(first);
    }

    // Returns the next number with a sign: 0, -1, 1, -2, 2, ... are stored as 0, 1, 2, 3, 4, ...
    std::int64_t next_signed() {
        const std::uint64_t value = next();
        return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
    }

    // Returns the next number. Throws std::invalid_argument, naming `what`, if it is above `most`.
    std::uint64_t next_up_to(std::uint64_t most, const char* what) {
        const std::uint64_t value = next();
        if (value > most) {
            fail_index(std::string(what) + " is too large");
        }
        return value;
    }

  private:
    static constexpr std::size_t kMaxBytes = 10;  // of a number of 64 bits

    std::uint64_t next_long(std::uint8_t first);

    std::array<const std::uint8_t*, kMaxBytes> planes_{};  // the next first, second, ... byte
};

// Reads a column of strings.
class StringColumn {
  public:
    // Throws std::invalid_argument unless the bytes hold num_rows strings.
    StringColumn(Bytes bytes, std::uint64_t num_rows);

    // Returns the next string without its NUL. Must be called at most num_rows times.
    std::string_view next() {
        const std::string_view text(next_);
        next_ += text.size() + 1;
        return text;
    }

  private:
    const char* next_;
};

// Cuts the stored columns of an index into tables and columns.
class ColumnCutter {
  public:
    explicit ColumnCutter(Bytes columns)
        : next_(columns.data()), end_(columns.data() + columns.size()) {}

    // Returns the number of rows of the next table. Throws std::invalid_argument.
    std::uint64_t next_num_rows() { return next_number(); }
    // Returns the bytes of the next column. Throws std::invalid_argument.
    Bytes next_column();
    // Throws std::invalid_argument if bytes are left.
    void finish() const;

  private:
    std::uint64_t next_number();

    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

// Writes a column of numbers.
class NumberColumnWriter {
  public:
    void add(std::uint64_t value) {
        std::size_t plane = 0;
        for (; value >= 0x80; value >>= 7) {
            byte_of(plane++).push_back(static_cast<std::uint8_t>(value | 0x80));
        }
        byte_of(plane).push_back(static_cast<std::uint8_t>(value));
    }
    void add_signed(std::int64_t value) {
        add(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
    }
    // The number of bytes of the column.
    std::uint64_t size() const;
    // Appends the bytes of the column, with their number before them, and frees them.
    void move_to(std::vector<std::uint8_t>& columns);

  private:
    GrowingBytes& byte_of(std::size_t plane) {
        if (plane == planes_.size()) {
            planes_.emplace_back();
        }
        return planes_[plane];
    }

    std::vector<GrowingBytes> planes_;
};

// Writes a column of strings, or of bytes without separators.
class ByteColumnWriter {
  public:
    // Throws std::invalid_argument if the string contains a NUL.
    void add_string(std::string_view text);
    void add_bytes(Bytes bytes) { bytes_.append(bytes); }
    std::uint64_t size() const { return bytes_.size(); }
    // Appends the bytes of the column, with their number before them, and frees them.
    void move_to(std::vector<std::uint8_t>& columns);

  private:
    GrowingBytes bytes_;
};

// Appends a number in as few bytes as possible, lowest 7 bits first.
void append_number(std::vector<std::uint8_t>& columns, std::uint64_t value);

}  // namespace gompfs

// Big-endian numbers and records in SQLite's file format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace gompfs {

[[noreturn]] inline void fail_image(const char* what) { throw std::invalid_argument(what); }

inline std::uint32_t big_endian16(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 8 | bytes[1];
}
inline std::uint32_t big_endian32(const std::uint8_t* bytes) {
    return big_endian16(bytes) << 16 | big_endian16(bytes + 2);
}

std::uint64_t read_long_varint(const std::uint8_t*& next, const std::uint8_t* end);

// Reads a variable-length integer of SQLite and advances `next`: seven bits per byte, highest
// first; a ninth byte has eight. Throws if the integer does not end before `end`.
inline std::uint64_t read_varint(const std::uint8_t*& next, const std::uint8_t* end) {
    if (next < end && *next < 0x80) [[likely]] {
        return *next++;
    }
    return read_long_varint(next, end);
}

// A field of a record. Text and blobs point into the record's bytes.
struct Field {
    enum class Rank : std::uint8_t { null, number, text, blob };
    Rank rank = Rank::null;
    bool is_real = false;
    std::uint32_t size = 0;               // of a text or blob
    const std::uint8_t* bytes = nullptr;  // of a text or blob
    std::int64_t integer = 0;
    double real = 0;

    bool is_integer() const { return rank == Rank::number && !is_real; }
};

// Reads the fields of a record in order. Throws std::invalid_argument if the record has too few
// fields or is shorter than it claims.
class FieldReader {
  public:
    explicit FieldReader(std::span<const std::uint8_t> record);
    void read(Field& field);

  private:
    const std::uint8_t* type_;
    const std::uint8_t* types_end_;
    const std::uint8_t* next_;
    const std::uint8_t* const end_;
};

// The first fields of a record, which order a b-tree.
class Key {
  public:
    static constexpr std::uint32_t kMaxFields = 4;

    // Throws what FieldReader throws.
    void read(std::span<const std::uint8_t> record, std::uint32_t num_fields);
    // Compares keys as SQLite does with the collation BINARY.
    bool is_before(const Key& other) const;

  private:
    static int compare(const Field& left, const Field& right);

    std::array<Field, kMaxFields> fields_;
    std::uint32_t num_fields_ = 0;
};

}  // namespace gompfs

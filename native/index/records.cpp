// Reads and compares keys of SQLite records; see records.h. Keys compare field by field: NULL, then
// numbers, then text, then blobs. Integers and reals compare by value.
#include "index/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace gompfs {

std::uint64_t read_long_varint(const std::uint8_t*& next, const std::uint8_t* end) {
    std::uint64_t value = 0;
    for (int index = 0; next != end; ++index) {
        const std::uint8_t byte = *next++;
        if (index == 8) {
            return value << 8 | byte;
        }
        value = value << 7 | (byte & 0x7f);
        if (byte < 0x80) {
            return value;
        }
    }
    fail_image("a number is cut off");
}

FieldReader::FieldReader(std::span<const std::uint8_t> record)
    : type_(record.data()), end_(record.data() + record.size()) {
    const std::uint64_t header_size = read_varint(type_, end_);
    if (header_size > record.size()) {
        fail_image("a record is shorter than its header");
    }
    types_end_ = next_ = record.data() + header_size;
}

void FieldReader::read(Field& field) {
    if (type_ >= types_end_) {
        fail_image("a record lacks fields");
    }
    const std::uint64_t serial_type = read_varint(type_, types_end_);
    constexpr std::uint8_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    const std::uint64_t size = serial_type < 12 ? kSizes[serial_type] : (serial_type - 12) / 2;
    if (size > static_cast<std::uint64_t>(end_ - next_)) {
        fail_image("a record is shorter than its fields");
    }
    const std::uint8_t* const bytes = next_;
    next_ += size;
    if (serial_type >= 12) {
        field.rank = serial_type % 2 == 0 ? Field::Rank::blob : Field::Rank::text;
        field.size = static_cast<std::uint32_t>(size);
        field.bytes = bytes;
        return;
    }
    field.rank = serial_type == 0 ? Field::Rank::null : Field::Rank::number;
    field.is_real = serial_type == 7;
    if (serial_type >= 8) {
        if (serial_type >= 10) {
            fail_image("a record has a field of an unknown type");
        }
        field.integer = static_cast<std::int64_t>(serial_type - 8);
        return;
    }
    std::uint64_t value = size != 0 && bytes[0] >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::uint64_t at = 0; at < size; ++at) {
        value = value << 8 | bytes[at];
    }
    field.integer = static_cast<std::int64_t>(value);
    if (field.is_real) {
        field.real = std::bit_cast<double>(value);
        if (std::isnan(field.real)) {  // NULL to SQLite
            field.rank = Field::Rank::null;
        }
    }
}

void Key::read(std::span<const std::uint8_t> record, std::uint32_t num_fields) {
    FieldReader reader(record);
    for (num_fields_ = 0; num_fields_ < num_fields; ++num_fields_) {
        reader.read(fields_[num_fields_]);
    }
}

int Key::compare(const Field& left, const Field& right) {
    if (left.rank != right.rank) {
        return left.rank < right.rank ? -1 : 1;
    }
    if (left.rank == Field::Rank::number) {
        if (!left.is_real && !right.is_real) {
            return left.integer == right.integer ? 0 : left.integer < right.integer ? -1 : 1;
        }
        // Represents all values of both types exactly.
        const auto number = [](const Field& field) -> long double {
            return field.is_real ? field.real : static_cast<long double>(field.integer);
        };
        return number(left) == number(right) ? 0 : number(left) < number(right) ? -1 : 1;
    }
    if (left.rank == Field::Rank::null) {
        return 0;
    }
    const std::uint32_t shared = std::min(left.size, right.size);
    const int order = shared == 0 ? 0 : std::memcmp(left.bytes, right.bytes, shared);
    if (order != 0) {
        return order;
    }
    return left.size == right.size ? 0 : left.size < right.size ? -1 : 1;
}

bool Key::is_before(const Key& other) const {
    for (std::uint32_t index = 0; index < num_fields_; ++index) {
        const int order = compare(fields_[index], other.fields_[index]);
        if (order != 0) {
            return order < 0;
        }
    }
    return false;
}

}  // namespace gompfs

// Hashes and comparisons of bytes that all parsers use.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/little_endian.h"
#include "shared/match_costs.h"

namespace gompfs {

// A hash of four bytes.
template <int kBits>
std::uint32_t hash4(const std::uint8_t* bytes) {
    return hash_four(load<std::uint32_t>(bytes), kBits);
}

// A hash of three bytes.
template <int kBits>
std::uint32_t hash3(const std::uint8_t* bytes) {
    return hash_three(load<std::uint32_t>(bytes), kBits);
}

// A hash of five bytes. Three more before them are read.
template <int kBits>
std::uint32_t hash5(const std::uint8_t* bytes) {
    const std::uint64_t five = load<std::uint64_t>(bytes - 3) >> 24;
    return static_cast<std::uint32_t>(five * 0x9e3779b185ebca87 >> (64 - kBits));
}

// The number of equal bytes, at most `limit`, of which the first `length` are known to be equal.
inline std::uint32_t common_length(const std::uint8_t* left, const std::uint8_t* right,
                                   std::uint32_t limit, std::uint32_t length = 0) {
    while (length + 8 <= limit) {
        const std::uint64_t difference =
            load<std::uint64_t>(left + length) ^ load<std::uint64_t>(right + length);
        if (difference != 0) {
            return length + static_cast<std::uint32_t>(std::countr_zero(difference) >> 3);
        }
        length += 8;
    }
    while (length < limit && left[length] == right[length]) {
        ++length;
    }
    return length;
}

// The number of equal bytes before two ends, at most `limit`, of which `length` are known.
inline std::uint32_t common_suffix(const std::uint8_t* left_end, const std::uint8_t* right_end,
                                   std::uint32_t limit, std::uint32_t length = 0) {
    while (length + 8 <= limit) {
        const std::uint64_t difference = load<std::uint64_t>(left_end - length - 8) ^
                                         load<std::uint64_t>(right_end - length - 8);
        if (difference != 0) {
            return length + static_cast<std::uint32_t>(std::countl_zero(difference) >> 3);
        }
        length += 8;
    }
    while (length < limit &&
           left_end[-1 - static_cast<int>(length)] == right_end[-1 - static_cast<int>(length)]) {
        ++length;
    }
    return length;
}

}  // namespace gompfs

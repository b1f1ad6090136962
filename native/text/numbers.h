// Variable-length numbers (LEB128): seven bits per byte, lowest first; the highest bit of a byte
// says that another byte follows.
#pragma once

#include <cstdint>
#include <vector>

namespace gompfs {

inline void append_number(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
    }
    bytes.push_back(static_cast<std::uint8_t>(value));
}

// Reads what append_number wrote, without checks: only for bytes that this process wrote or has
// checked.
inline std::uint64_t read_number(const std::uint8_t*& next) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const std::uint8_t byte = *next++;
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

}  // namespace gompfs

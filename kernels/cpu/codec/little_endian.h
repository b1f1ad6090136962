// Unaligned little-endian integers in byte arrays, and copies that may write a little more than asked.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gompfs {

static_assert(std::endian::native == std::endian::little, "the loads below assume a little-endian machine");

template <typename Integer>
inline Integer load(const std::uint8_t* bytes) {
    Integer value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <typename Integer>
inline void append(std::vector<std::uint8_t>& bytes, Integer value) {
    const std::size_t size = bytes.size();
    bytes.resize(size + sizeof value);
    std::memcpy(bytes.data() + size, &value, sizeof value);
}

// Copies Size bytes, as if through a register: source and target may overlap.
template <std::size_t Size>
inline void copy_fixed(std::uint8_t* target, const std::uint8_t* source) {
    std::uint8_t chunk[Size];
    std::memcpy(chunk, source, Size);
    std::memcpy(target, chunk, Size);
}

// Copies a match whose source may overlap its target: byte i is read after byte i - offset was written.
inline void copy_overlapping(std::uint8_t* target, std::uint32_t offset, std::uint32_t length) {
    const std::uint8_t* source = target - offset;
    if (offset >= length) {
        std::memcpy(target, source, length);
        return;
    }
    for (std::uint32_t index = 0; index < length; ++index) {
        target[index] = source[index];
    }
}

}  // namespace gompfs

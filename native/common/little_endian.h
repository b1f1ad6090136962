// Loads and stores of unaligned little-endian integers in byte arrays.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gompfs {

static_assert(std::endian::native == std::endian::little,
              "the loads below assume a little-endian machine");

template <typename Integer>
inline Integer load(const std::uint8_t* bytes) {
    Integer value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <typename Integer>
inline void store(std::uint8_t* bytes, Integer value) {
    std::memcpy(bytes, &value, sizeof value);
}

template <typename Integer>
inline void append(std::vector<std::uint8_t>& bytes, Integer value) {
    const std::size_t size = bytes.size();
    bytes.resize(size + sizeof value);
    std::memcpy(bytes.data() + size, &value, sizeof value);
}

}  // namespace gompfs

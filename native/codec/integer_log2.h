// Logarithms as integers, so that costs, and with them the bytes of an archive, are the same on
// every machine: std::log2 may differ in the last bit between libraries.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace gompfs {

// Logarithms are in 1/256.
constexpr int kLog2One = 256;

// 256 * log2(1 + index / 256), rounded down: each squaring of the mantissa gives one more bit.
constexpr std::array<std::uint16_t, 256> make_log2_table() {
    std::array<std::uint16_t, 256> table{};
    for (std::uint64_t index = 0; index < table.size(); ++index) {
        std::uint64_t mantissa = (256 + index) << 22;  // 1 is 1 << 30
        for (int bit = 7; bit >= 0; --bit) {
            mantissa = mantissa * mantissa >> 30;
            if (mantissa >> 31 != 0) {
                mantissa >>= 1;
                table[index] = static_cast<std::uint16_t>(table[index] | 1 << bit);
            }
        }
    }
    return table;
}

inline constexpr std::array<std::uint16_t, 256> kLog2Table = make_log2_table();

// 256 * log2(value) for a positive value, from its highest nine bits.
constexpr int log2_fixed(std::uint32_t value) {
    const int octave = std::bit_width(value) - 1;
    const std::uint32_t mantissa = octave >= 8 ? value >> (octave - 8) : value << (8 - octave);
    return octave * kLog2One + kLog2Table[mantissa & 255];
}

}  // namespace gompfs

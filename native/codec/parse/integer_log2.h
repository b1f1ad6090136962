// Logarithms as integers by a table, so that costs, and with them the bytes of an archive, are the
// same on every machine.
#pragma once

#include <array>
#include <cstdint>

#include "shared/match_costs.h"

namespace gompfs {

constexpr std::array<std::uint16_t, 256> make_log2_table() {
    std::array<std::uint16_t, 256> table{};
    for (unsigned index = 0; index < table.size(); ++index) {
        table[index] = static_cast<std::uint16_t>(log2_of_mantissa(index));
    }
    return table;
}

inline constexpr std::array<std::uint16_t, 256> kLog2Table = make_log2_table();

// 256 * log2(value) for a positive value, from its highest nine bits.
constexpr int log2_fixed(std::uint32_t value) {
    return (bits_of(value) - 1) * kLog2One + kLog2Table[fraction_of(value)];
}

}  // namespace gompfs

// Counts how often each byte occurs.
#pragma once

#include <array>
#include <cstdint>

#include "common/bytes.h"

namespace gompfs {

using ByteCounts = std::array<std::uint32_t, 256>;

// Adds the number of occurrences of each byte to `counts`. Neighbouring bytes are counted in
// different tables: an increment that reads the result of the one before must wait for it.
inline void count_bytes(Bytes bytes, std::span<std::uint32_t, 256> counts) {
    constexpr std::size_t kNumTables = 4;
    std::array<ByteCounts, kNumTables> tables{};
    const std::size_t even = bytes.size() / kNumTables * kNumTables;
    for (std::size_t index = 0; index < even; index += kNumTables) {
        for (std::size_t table = 0; table < kNumTables; ++table) {
            ++tables[table][bytes[index + table]];
        }
    }
    for (std::size_t index = even; index < bytes.size(); ++index) {
        ++tables[0][bytes[index]];
    }
    for (const ByteCounts& table : tables) {
        for (std::size_t byte = 0; byte < table.size(); ++byte) {
            counts[byte] += table[byte];
        }
    }
}

}  // namespace gompfs

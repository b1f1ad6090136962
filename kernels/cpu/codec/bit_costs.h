// What the symbols of gompresso-bit cost, estimated from how often they occur in a parsed block.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/bit_fields.h"

namespace gompfs {

constexpr std::int32_t kBitCost = 64;  // costs count 1/64 bit

// With the extra bits behind the symbol.
struct BitCosts {
    std::array<std::int32_t, kNumLiteralSymbols> literal;
    std::array<std::int32_t, kNumTokenSymbols> token;
    std::array<std::int32_t, kNumOffsetSymbols> offset;
};

// How often each symbol occurs where content is written as these sequences.
SymbolCounts count_symbols(Bytes content, const std::vector<Sequence>& sequences);

BitCosts estimate_costs(const SymbolCounts& counts);

}  // namespace gompfs

// Estimates what the symbols of gompresso-bit cost, from the number of times they occur in a parsed
// block.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/parse/bit_fields.h"
#include "common/bytes.h"
#include "shared/ways.h"

namespace gompfs {

// The cost of each symbol, including the extra bits after its codeword, in 1/kBitCost bit.
struct BitCosts {
    std::array<std::int32_t, kNumLiteralSymbols> literal;
    std::array<std::int32_t, kNumTokenSymbols> token;
    std::array<std::int32_t, kNumAllOffsetSymbols> offset;
};

// Counts the symbols that would be written for `content` if it were encoded as these sequences.
SymbolCounts count_symbols(Bytes content, const std::vector<Sequence>& sequences);

BitCosts estimate_costs(const SymbolCounts& counts);

}  // namespace gompfs

// Estimates costs of literals; see literal_costs.h. A byte that makes up a share s of the block
// costs 1.2 - 0.9 * log2(s) bits, but at least 2 and at most 11.
#include "codec/literal_costs.h"

#include <algorithm>
#include <array>

#include "codec/byte_counts.h"
#include "codec/integer_log2.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr int kMinCost = 2 * kCostOfBit;
constexpr int kMaxCost = 11 * kCostOfBit;
static_assert(kMaxCost * kBitMaxMatchLength < 1 << 16);

}  // namespace

void LiteralCosts::estimate(Bytes content) {
    ByteCounts counts{};
    count_bytes(content, counts);
    const int total = log2_fixed(static_cast<std::uint32_t>(content.size()) + 256);
    std::array<std::uint16_t, 256> costs;
    for (std::size_t byte = 0; byte < costs.size(); ++byte) {
        const int information = total - log2_fixed(counts[byte] + 1);
        const int cost = (12 * kLog2One + 9 * information) * kCostOfBit / (10 * kLog2One);
        costs[byte] = static_cast<std::uint16_t>(std::clamp(cost, kMinCost, kMaxCost));
    }
    sums_.resize(content.size() + 1);
    std::uint16_t sum = 0;
    std::uint16_t* next = sums_.data();
    for (const std::uint8_t byte : content) {
        *next++ = sum;
        sum = static_cast<std::uint16_t>(sum + costs[byte]);
    }
    *next = sum;
}

}  // namespace gompfs

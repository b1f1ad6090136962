// Estimates costs of literals; see literal_costs.h.
#include "codec/parse/literal_costs.h"

#include <array>

#include "codec/parse/byte_counts.h"
#include "codec/parse/integer_log2.h"
#include "shared/match_costs.h"

namespace gompfs {

void LiteralCosts::estimate(Bytes content) {
    ByteCounts counts{};
    count_bytes(content, counts);
    const int total = log2_fixed(static_cast<std::uint32_t>(content.size()) + 256);
    std::array<std::uint16_t, 256> costs;
    for (std::size_t byte = 0; byte < costs.size(); ++byte) {
        costs[byte] = static_cast<std::uint16_t>(literal_cost(total, log2_fixed(counts[byte] + 1)));
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

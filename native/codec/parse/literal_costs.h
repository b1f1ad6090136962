// Estimated costs of a block's bytes as literals, for parsers that do not know the codes yet.
#pragma once

#include <cstdint>
#include <vector>

#include "common/bytes.h"
#include "shared/match_costs.h"

namespace gompfs {

class LiteralCosts {
  public:
    // Estimates the costs from the byte frequencies of the block. The costs are flattened, because
    // rare bytes are more likely to be literals.
    void estimate(Bytes content);

    // The cost of `length` bytes from a position on. The sums are kept modulo 2^16, which is more
    // than the literals of the longest match can cost.
    int of(std::uint32_t position, std::uint32_t length) const {
        return static_cast<std::uint16_t>(sums_[position + length] - sums_[position]);
    }

  private:
    std::vector<std::uint16_t> sums_;  // of the costs of all bytes before a position
};

}  // namespace gompfs

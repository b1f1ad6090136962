// A parser for gompresso-bit that searches for the cheapest sequences.
#pragma once

#include <vector>

#include "codec/parser.h"

namespace gompfs {

// As parse_block: slower, but closer to the fewest bits.
void parse_bit_block_optimally(Bytes content, const ParserLimits& limits,
                               const SearchEffort& effort, std::vector<Sequence>& sequences);

}  // namespace gompfs

// Searches for the cheapest sequences of gompresso-bit without dependency elimination.
#pragma once

#include <vector>

#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

// See bit_backward_parser.cpp. `limits` must be those of gompresso-bit, without dependency
// elimination.
void parse_bit_block_backwards(Bytes content, const ParserLimits& limits,
                               const SearchEffort& effort, std::vector<Sequence>& sequences);

}  // namespace gompfs

// Searches for the cheapest sequences of gompresso-byte without dependency elimination.
#pragma once

#include <vector>

#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

// See backward_parser.cpp. `limits` must be those of gompresso-byte, without dependency
// elimination.
void parse_block_backwards(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences);

}  // namespace gompfs

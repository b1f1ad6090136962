// A parser that searches for the cheapest sequences, for codecs without entropy coding.
// optimal_parser.cpp explains the algorithm.
#pragma once

#include <vector>

#include "codec/parser.h"

namespace gompfs {

// As parse_block (choose_parser.h): slower, but the result is closer to the smallest size.
void parse_block_optimally(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences);

}  // namespace gompfs

// A fast parser: takes the match that gains most, unless a later one gains more (lazy evaluation).
// lazy_parser.cpp explains the algorithm.
#pragma once

#include <vector>

#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

// As parse_block (choose_parser.h).
void parse_block_lazily(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                        std::vector<Sequence>& sequences);

}  // namespace gompfs

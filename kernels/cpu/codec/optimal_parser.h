// A near-optimal parser for codecs whose lengths and offsets cost whole bytes.
#pragma once

#include <vector>

#include "codec/parser.h"

namespace gompfs {

// Cuts content into the sequences that take the fewest bytes, as far as the search goes.
void parse_block_optimally(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences);

}  // namespace gompfs

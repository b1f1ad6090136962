// Parses a block with the parser of a level.
#pragma once

#include <vector>

#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

// The effort of a level, which must be kMinLevel to kMaxLevel.
SearchEffort search_effort(int level, bool entropy_coded);

// Cuts content into sequences that reproduce it. With dependency elimination, each byte of a
// match's source lies below the high-water mark of the match's group, or is a literal of that
// group.
void parse_block(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                 std::vector<Sequence>& sequences);

}  // namespace gompfs

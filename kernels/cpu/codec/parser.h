// Parsing a block into sequences: the match finder and the rule of dependency elimination.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/codec.h"

namespace gompfs {

// A literal string and one match behind it; match_length 0 means that there is none.
struct Sequence {
    std::uint32_t literal_length;
    std::uint32_t match_length;
    std::uint32_t match_offset;
};

// What the parser must know of the codec that will write its sequences. Costs are in 1/16 bit.
struct ParserLimits {
    std::uint32_t min_match_length;
    std::uint32_t max_literal_length;
    std::uint32_t max_match_length;
    std::uint32_t max_match_offset;
    int group_size_log2;
    bool dependency_elimination;
    bool entropy_coded;
};

struct SearchEffort {
    int chain_length;          // candidates looked at for one position
    int nice_length;           // a match this long is taken without looking further
    std::uint32_t lazy_steps;  // how many positions ahead a better match is looked for
    bool skips;                // search at fewer positions where matches are rare
    bool optimal;              // weigh all ways against each other (*optimal_parser.h)
};

SearchEffort search_effort(int level, bool entropy_coded);

// Cuts content into sequences that reproduce it. With dependency elimination, every match source
// lies below the high-water mark of the match's group, or in literals of that group, byte by byte.
void parse_block(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                 std::vector<Sequence>& sequences);

}  // namespace gompfs

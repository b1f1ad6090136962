// The efforts of the levels, and the choice of a parser; see choose_parser.h.
#include "codec/choose_parser.h"

#include "codec/bit_optimal_parser.h"
#include "codec/lazy_parser.h"
#include "codec/optimal_parser.h"

namespace gompfs {

SearchEffort search_effort(int level, bool entropy_coded) {
    // Chosen by measurement: at the fast end a level takes about 5% more time than the one below,
    // at the slow end about 30%. Without entropy coding (kByteCoded) all match offsets cost the
    // same, so longer searches pay; the optimal parser saves 1.5% of the size there and takes twice
    // the time. With entropy coding the costs depend on symbol counts that are not known before
    // parsing; the optimal parser saves 3 to 5% and takes 4 to 6 times the time.
    static constexpr SearchEffort kEntropyCoded[] = {
        {1, 16, 0, false, true, false},   {3, 32, 0, true, false, false},
        {4, 64, 1, true, false, false},   {8, 128, 1, true, false, false},
        {12, 128, 1, true, false, false}, {24, 128, 1, true, false, false},
        {48, 256, 2, true, false, false}, {256, 426, 2, true, false, false},
        {128, 128, 0, true, false, true},
    };
    static constexpr SearchEffort kByteCoded[] = {
        {2, 24, 0, false, true, false},     {6, 32, 1, false, false, false},
        {12, 64, 1, false, false, false},   {32, 192, 1, false, false, false},
        {64, 256, 2, false, false, false},  {96, 64, 0, false, false, true},
        {192, 96, 0, false, false, true},   {256, 128, 0, false, false, true},
        {1024, 288, 0, false, false, true},
    };
    return (entropy_coded ? kEntropyCoded : kByteCoded)[level - 1];
}

void parse_block(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                 std::vector<Sequence>& sequences) {
    // The optimal parser for gompresso-bit supports the default group size only; other sizes exist
    // for comparisons.
    const bool is_default_size = limits.group_size_log2 == kDefaultGroupSizeLog2;
    if (limits.strict_sources) {
        parse_block_lazily(content, limits, effort, sequences);
    } else if (effort.optimal && !limits.entropy_coded) {
        parse_block_optimally(content, limits, effort, sequences);
    } else if (effort.optimal && (!limits.dependency_elimination || is_default_size)) {
        parse_bit_block_optimally(content, limits, effort, sequences);
    } else {
        parse_block_lazily(content, limits, effort, sequences);
    }
}

}  // namespace gompfs

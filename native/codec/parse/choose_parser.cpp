// The efforts of the levels, and the choice of a parser; see choose_parser.h.
#include "codec/parse/choose_parser.h"

#include "codec/parse/backward_parser.h"
#include "codec/parse/bit_backward_parser.h"
#include "codec/parse/lazy_parser.h"
#include "shared/format_constants.h"

namespace gompfs {

// Chosen by measurement, so that each level takes longer than the one below and is smaller;
// docs/architecture.md has the figures. With entropy coding, the costs depend on symbol counts that
// are not known before parsing: the backward parser saves 3% and takes twelve times the time.
// Without entropy coding (kByteCoded) costs are known, and the backward parser saves 1% in one and
// a half times the time; where a rule limits sources, its levels are level 5.
SearchEffort search_effort(int level, bool entropy_coded) {
    static constexpr SearchEffort kEntropyCoded[kMaxLevel] = {
        {.chain_length = 1, .nice_length = 16, .skips = true},
        {.chain_length = 3, .nice_length = 32, .finds_short = true},
        {.chain_length = 4, .nice_length = 64, .lazy_steps = 1, .finds_short = true},
        {.chain_length = 8, .nice_length = 128, .lazy_steps = 1, .finds_short = true},
        {.chain_length = 12, .nice_length = 128, .lazy_steps = 1, .finds_short = true},
        {.chain_length = 24,
         .nice_length = 128,
         .lazy_steps = 1,
         .later_ends_later = true,
         .finds_short = true},
        {.chain_length = 48, .nice_length = 256, .lazy_steps = 2, .finds_short = true},
        {.chain_length = 512,
         .nice_length = kBitMaxMatchLength,
         .lazy_steps = 2,
         .finds_short = true,
         .backward_chain_length = 128,
         .backward_nice_length = kBitMaxMatchLength},
    };
    static constexpr SearchEffort kByteCoded[kMaxLevel] = {
        {.chain_length = 2, .nice_length = 24, .skips = true},
        {.chain_length = 6, .nice_length = 32, .lazy_steps = 1},
        {.chain_length = 16, .nice_length = 96, .lazy_steps = 1},
        {.chain_length = 80, .nice_length = 256, .lazy_steps = 1},
        {.chain_length = 128, .nice_length = 288, .lazy_steps = 2},
        {.chain_length = 128,
         .nice_length = 288,
         .lazy_steps = 2,
         .backward_chain_length = 112,
         .backward_nice_length = 128},
        {.chain_length = 128,
         .nice_length = 288,
         .lazy_steps = 2,
         .backward_chain_length = 192,
         .backward_nice_length = 128},
        {.chain_length = 128,
         .nice_length = 288,
         .lazy_steps = 2,
         .backward_chain_length = 384,
         .backward_nice_length = 192},
    };
    return (entropy_coded ? kEntropyCoded : kByteCoded)[level - 1];
}

void parse_block(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                 std::vector<Sequence>& sequences) {
    // Backwards, it is not known which sources the rule permits.
    const bool has_rule = limits.dependency_elimination || limits.strict_sources;
    if (has_rule || effort.backward_chain_length == 0) {
        parse_block_lazily(content, limits, effort, sequences);
    } else if (limits.entropy_coded) {
        parse_bit_block_backwards(content, limits, effort, sequences);
    } else {
        parse_block_backwards(content, limits, effort, sequences);
    }
}

}  // namespace gompfs

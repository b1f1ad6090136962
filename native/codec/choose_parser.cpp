// The efforts of the levels, and the choice of a parser; see choose_parser.h.
#include "codec/choose_parser.h"

#include "codec/backward_parser.h"
#include "codec/bit_backward_parser.h"
#include "codec/bit_codec.h"
#include "codec/bit_optimal_parser.h"
#include "codec/lazy_parser.h"
#include "codec/optimal_parser.h"

namespace gompfs {

// Chosen by measurement, so that each level takes longer than the one below and is smaller;
// docs/architecture.md has the figures. With entropy coding, the costs depend on symbol counts that
// are not known before parsing: the optimal parser saves 3% and takes eight times the time. Without
// entropy coding (kByteCoded) costs are known, and the optimal parser saves 1% in one and a half
// times the time.
SearchEffort search_effort(int level, bool entropy_coded) {
    static constexpr SearchEffort kEntropyCoded[] = {
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
         .nice_length = 426,
         .lazy_steps = 2,
         .finds_short = true,
         .backward_chain_length = 128},
        {.chain_length = 128, .nice_length = 128, .optimal = true, .backward_chain_length = 128},
    };
    static constexpr SearchEffort kByteCoded[] = {
        {.chain_length = 2, .nice_length = 24, .skips = true},
        {.chain_length = 6, .nice_length = 32, .lazy_steps = 1},
        {.chain_length = 16, .nice_length = 96, .lazy_steps = 1},
        {.chain_length = 80, .nice_length = 256, .lazy_steps = 1},
        {.chain_length = 128, .nice_length = 288, .lazy_steps = 2},
        {.chain_length = 112, .nice_length = 128, .optimal = true},
        {.chain_length = 192, .nice_length = 128, .optimal = true},
        {.chain_length = 384, .nice_length = 192, .optimal = true},
        {.chain_length = 1024, .nice_length = 288, .optimal = true},
    };
    return (entropy_coded ? kEntropyCoded : kByteCoded)[level - 1];
}

namespace {

// Parses with both near-optimal parsers, and keeps what takes less space. The forward one knows
// the last offset, which saves most in records; the backward one is better at most other content.
void parse_both_ways(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                     std::vector<Sequence>& sequences) {
    std::vector<Sequence> backwards;
    parse_bit_block_backwards(content, limits, effort, backwards);
    parse_bit_block_optimally(content, limits, effort, sequences);
    if (encode_bit(content, backwards, limits).size() <
        encode_bit(content, sequences, limits).size()) {
        sequences.swap(backwards);
    }
}

}  // namespace

void parse_block(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                 std::vector<Sequence>& sequences) {
    // The optimal parser for gompresso-bit supports the default group size only; other sizes exist
    // for comparisons.
    const bool is_default_size = limits.group_size_log2 == kDefaultGroupSizeLog2;
    const bool is_backward =
        limits.entropy_coded && !limits.dependency_elimination && effort.backward_chain_length != 0;
    if (limits.strict_sources) {
        parse_block_lazily(content, limits, effort, sequences);
    } else if (is_backward && effort.optimal) {
        parse_both_ways(content, limits, effort, sequences);
    } else if (is_backward) {
        parse_bit_block_backwards(content, limits, effort, sequences);
    } else if (effort.optimal && !limits.entropy_coded && !limits.dependency_elimination) {
        parse_block_backwards(content, limits, effort, sequences);
    } else if (effort.optimal && !limits.entropy_coded) {
        parse_block_optimally(content, limits, effort, sequences);
    } else if (effort.optimal && (!limits.dependency_elimination || is_default_size)) {
        parse_bit_block_optimally(content, limits, effort, sequences);
    } else {
        parse_block_lazily(content, limits, effort, sequences);
    }
}

}  // namespace gompfs

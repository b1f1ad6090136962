// A parser that searches for the cheapest sequences of gompresso-bit.
//
// Algorithm
//
// Dynamic programming forwards over positions. A state is the cheapest way to end a sequence at a
// position, one for each phase (number of sequences in the open group). Whether a source is legal,
// and whether a match offset repeats the last one, depends on the way to a state; each state keeps
// the last sequence (link), the high-water mark and the last offset (row), from which both are
// read. The states of the phases usually cut groups at different positions, so that the rule of
// dependency elimination costs little compression.
//
// Literals
//
// The cost of a token depends on the class of its literal length and the class of its match length
// together. So literals are not states. At a position where a match begins, weigh_literals finds
// the cheapest way for each literal class among the states before the position: classes 0 to 4 are
// one length each, classes 5 and 6 a few lengths (weigh_class), class 7 all longer ones, whose best
// start is carried along (pass_literal). Costs of states are kept minus the cost of all bytes
// before them as literals, so that they can be compared across positions.
//
// Pruning
//
// States that cost 12 bits more than the best one nearby are given up. Matches at a position are
// only offered if one of them could improve some state, judged by a lower bound of its cost
// (worth_offering). For a match, lengths are tried from the longest down until two were useless.
//
// Costs
//
// The cost of symbols is estimated from a greedy guess, then from a parse of the last quarter of
// the block, and the whole block is parsed with these.
#include "codec/bit_optimal_parser.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/bit_costs.h"
#include "codec/bit_window_parser.h"
#include "codec/match_table.h"

namespace gompfs {
namespace {

// A first guess at the sequences: the longest matches that seem worth their offset, unless the next
// position has a longer one.
void guess_sequences(std::uint32_t size, const MatchTable& matches,
                     std::vector<Sequence>& sequences) {
    const auto longest = [&](std::uint32_t position) {
        const std::span<const FoundMatch> found = matches.at(position);
        const std::span<const FoundMatch> others = matches.from_dictionary(position);
        const FoundMatch match = found.empty() ? FoundMatch{0, 0} : found.back();
        const FoundMatch other = others.empty() ? FoundMatch{0, 0} : others.back();
        return other.length > match.length + 1 ? other : match;
    };
    const auto pays = [](const FoundMatch& match) {
        const int num_bits = std::bit_width(match.offset & ~kFromDictionary);
        return static_cast<std::uint32_t>(num_bits) + 3 <= 4 * match.length;
    };
    sequences.clear();
    std::uint32_t anchor = 0;
    for (std::uint32_t position = 0; position < size; ++position) {
        const FoundMatch match = longest(position);
        if (position - anchor == kMaxLiterals) {
            sequences.push_back({kMaxLiterals, 0, 0});
            anchor = position;
        } else if (match.length > 0 && pays(match) &&
                   longest(position + 1).length <= match.length + 1) {
            sequences.push_back({position - anchor, match.length, match.offset});
            anchor = position + match.length;
            position = anchor - 1;
        }
    }
}

struct Workspace {
    MatchTable matches;
    BitWindowParser parser;
};

}  // namespace

// Estimates the costs from a guess, then from the last quarter of the block parsed with them. This
// gains half of what another parse of the whole block would gain.
void parse_bit_block_optimally(Bytes content, const ParserLimits& limits,
                               const SearchEffort& effort, std::vector<Sequence>& sequences) {
    constexpr std::uint32_t kSampleShare = 4;
    thread_local const auto workspace = std::make_unique<Workspace>();
    const auto size = static_cast<std::uint32_t>(content.size());
    const std::uint32_t sample_begin = size - size / kSampleShare;
    auto& [matches, parser] = *workspace;
    ParserLimits packed_limits = limits;
    if (limits.dictionary != nullptr) {
        packed_limits.max_match_offset = kFirstCandidate - 1;
    }
    matches.fill(content, packed_limits, effort);
    guess_sequences(size, matches, sequences);
    SymbolCounts counts = count_symbols(content, sequences);
    const auto parse_from = [&](std::uint32_t first) {
        parser.parse(content, first, limits.dependency_elimination, matches, estimate_costs(counts),
                     sequences);
    };
    parse_from(sample_begin);
    const SymbolCounts sample = count_symbols(content.subspan(sample_begin), sequences);
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
        counts[symbol] += kSampleShare * sample[symbol];
    }
    parse_from(0);
}

}  // namespace gompfs

// A parser that finds the cheapest sequences of gompresso-bit, with the costs that the symbols have
// in the block.
//
// Ways
//
// Dynamic programming backwards over positions, as in backward_parser.cpp: the cost of a position
// is that of the cheapest way from there to the end of the block, where a way begins with a new
// sequence. A token codes the class of the literal length and that of the match length together. So
// there is a state for each literal length before a position (long ones share one), and a cost for
// each state: that of the next literal, or of the cheapest match after literals of that class.
// Symbols cost what they would take according to the sequences of an earlier pass over the block;
// the first pass begins with fixed costs. Costs are integers, as in best_match.h.
//
// Matches
//
// Each position has at most three candidates (bit_candidates.h): the nearest match, the one that
// gains most, and one of three bytes. A length that several have is that of the nearest. With a
// dictionary there is a fourth, the match from there that gains most. All of its lengths are tried,
// because a low address may cost less than an offset.
//
// Repeats
//
// A match is often followed by a few bytes that differ, and then by a match with the same offset,
// which costs little. The way after the end of a match does not know the offset of that match. So
// each position has, for one offset, what is gained if a match with this offset ends there and is
// repeated. Offsets that were set later replace others. The first sequence of a row repeats
// nothing; this is known only when the way is followed.
//
// Segments
//
// The GPU searches the segments of a block at the same time (kernels/encode/find_ways.cu). So the
// search of a segment begins with the costs that the positions after it had in the pass before, or
// in the first pass, with a guess. This costs 0.03%. Here the segments are searched first to last,
// so that the positions after a segment still have those costs.
#include "codec/parse/bit_backward_parser.h"

#include <algorithm>
#include <array>
#include <memory>

#include "codec/parse/bit_candidates.h"
#include "codec/parse/bit_costs.h"
#include "codec/parse/bit_fields.h"
#include "common/copy.h"

namespace gompfs {
namespace {

// The functions that the kernels use must give what the tables of the format say.
constexpr bool has_classes_of_the_format() {
    for (unsigned length = kBitMinMatchLength; length <= kBitMaxMatchLength; ++length) {
        if (match_class_of(length) != kMatchClassOf[length]) {
            return false;
        }
    }
    for (int state = 0; state < kNumLiteralStates; ++state) {
        const int literal_class = literal_class_of(state);
        if (literal_class != kLiteralClassOf[state] ||
            state_in_class(state) != state - kLiteralClassBase[literal_class]) {
            return false;
        }
    }
    return kMatchClassBase[match_class_of(kEachLength)] == kEachLength;
}
static_assert(has_classes_of_the_format());

// The bits of the codeword of an address in the first pass, as in BestMatches::address_cost.
constexpr unsigned kFirstAddressBits = 5;

// A cost for each class of literal lengths.
typedef std::int32_t ClassLanes
    __attribute__((vector_size(sizeof(std::int32_t) * kNumLiteralClasses)));

// The costs of symbols, with their extra bits. Tokens are by match class, and shifted as the costs
// of items are.
struct WayCosts {
    std::array<std::int32_t, kNumLiteralSymbols> literal;
    std::array<ClassLanes, kNumMatchClasses> token;
    std::array<std::int32_t, kNumAllOffsetSymbols> offset;

    std::int32_t token_of(int literal_state, unsigned match_class) const {
        return token[match_class][literal_class_of(literal_state)] >> kItemShift;
    }
    void set_token(int symbol, std::int32_t cost) {
        token[symbol % kNumMatchClasses][symbol / kNumMatchClasses] = cost << kItemShift;
    }
};

WayCosts costs_of(Bytes content, const std::vector<Sequence>& sequences) {
    const BitCosts estimated = estimate_costs(count_symbols(content, sequences));
    const auto rounded = [](std::int32_t cost) { return way_cost(cost, 0); };
    WayCosts costs;
    std::ranges::transform(estimated.literal, costs.literal.begin(), rounded);
    for (int symbol = 0; symbol < kNumTokenSymbols; ++symbol) {
        costs.set_token(symbol, rounded(estimated.token[symbol]));
    }
    std::ranges::transform(estimated.offset, costs.offset.begin(), rounded);
    return costs;
}

// Lengths of a match that are offered to a position: `count` from `first` on.
struct Offer {
    unsigned candidate;
    std::uint32_t first;
    std::uint32_t count;
    std::int32_t offset_cost;
};

// Replaces each item that costs more than a match of one of the offered lengths. `costs` are those
// of the ways from the position on.
GOMPFS_TARGET_CLONES void offer_lengths(const Offer& offer, const std::int32_t* costs,
                                        const ClassLanes* token, ClassLanes& items) {
    const std::int32_t first = pack_item(offer.offset_cost, offer.candidate, offer.first);
    ClassLanes cheapest = items;
    for (std::uint32_t index = 0; index < offer.count; ++index) {
        const std::uint32_t length = offer.first + index;
        const std::int32_t item =
            first + ((costs[length] - costs[1]) << kItemShift) - static_cast<std::int32_t>(index);
        const ClassLanes offered = token[kMatchClassOf[length]] + item;
        cheapest = offered < cheapest ? offered : cheapest;
    }
    items = cheapest;
}

template <typename Position>
class BitBackwardParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    using States = std::array<std::int32_t, kNumLiteralStates + 1>;
    using Choices = std::array<std::uint16_t, kNumLiteralClasses>;

    WayCosts first_costs() const;
    void find_ways(std::uint32_t begin, std::uint32_t end);
    States states_after(std::uint32_t end) const;
    void choose(std::uint32_t position, States& states);
    void offer_candidates(std::uint32_t position, ClassLanes& items);
    void offer_match(std::uint32_t position, unsigned candidate, std::uint32_t length,
                     std::int32_t cost, std::uint32_t shorter, ClassLanes& items);
    void offer_candidate(std::uint32_t position, unsigned candidate, std::uint32_t shorter,
                         ClassLanes& items);
    void offer(std::uint32_t position, const Offer& offer, ClassLanes& items) const {
        offer_lengths(offer, &costs_from_[position], costs_.token.data(), items);
    }
    std::int32_t gain_of_repeat(std::uint32_t end, const WayMatch& match);
    void follow(std::vector<Sequence>& sequences) const;

    std::int32_t offset_cost(std::uint32_t offset) const {
        return costs_.offset[offset_symbol(offset)];
    }

    Bytes content_;
    std::uint32_t size_ = 0;
    BitCandidates<Position> candidates_;
    WayCosts costs_;
    // Of each position and of the end of the block: the cost of the cheapest way, and what to do
    // after a match (pack_repeat).
    std::vector<std::int32_t> costs_from_;
    std::vector<std::uint64_t> repeats_;
    std::uint32_t segment_end_ = 0;
    std::vector<Choices> choices_;  // of each position; see taken_bit
};

template <typename Position>
WayCosts BitBackwardParser<Position>::first_costs() const {
    WayCosts costs{};
    for (std::uint32_t position = 0; position < size_; ++position) {
        costs.literal[content_[position]] = candidates_.first_literal_cost(position);
    }
    for (int symbol = 0; symbol < kNumTokenSymbols; ++symbol) {
        costs.set_token(symbol, first_token_cost(symbol));
    }
    for (int symbol = 0; symbol < kNumOffsetSymbols; ++symbol) {
        costs.offset[symbol] = first_offset_cost(symbol);
    }
    for (unsigned symbol = kFirstDictionarySymbol; symbol < kNumAllOffsetSymbols; ++symbol) {
        costs.offset[symbol] =
            kCostOfBit * static_cast<int>(kFirstAddressBits + dictionary_extra_bits(symbol));
    }
    return costs;
}

// The gain if a match that ends here is repeated.
template <typename Position>
std::int32_t BitBackwardParser<Position>::gain_of_repeat(std::uint32_t end, const WayMatch& match) {
    const std::uint64_t known = repeats_[end];
    if (repeat_offset(known) == match.offset || end >= segment_end_ || match.repeat_literals == 0) {
        return repeat_gain(known, match.offset);
    }
    std::int32_t cost = costs_.offset[kOffsetSymbolRepeat] +
                        costs_.token_of(static_cast<int>(match.repeat_literals),
                                        match_class_of(match.repeat_length));
    for (std::uint32_t literal = 0; literal < match.repeat_literals; ++literal) {
        cost += costs_.literal[content_[end + literal]];
    }
    const std::uint32_t after = end + match.repeat_literals + match.repeat_length;
    cost += costs_from_[after] - repeat_gain(repeats_[after], match.offset);
    const std::int32_t gain = costs_from_[end] - cost;
    if (gain <= 0) {
        return 0;
    }
    repeats_[end] = pack_repeat(match, gain);
    return gain;
}

// Offers the lengths of a match above `shorter`.
template <typename Position>
void BitBackwardParser<Position>::offer_match(std::uint32_t position, unsigned candidate,
                                              std::uint32_t length, std::int32_t cost,
                                              std::uint32_t shorter, ClassLanes& items) {
    if (shorter < kEachLength) {
        const std::uint32_t end = std::min(length, kEachLength) + 1;
        offer(position, {candidate, shorter + 1, end - (shorter + 1), cost}, items);
    }
    const std::uint32_t least = std::max(shorter, kEachLength);
    if (length > least) {
        const std::uint32_t count = std::min(length - least, kNumLongest);
        offer(position, {candidate, length + 1 - count, count, cost}, items);
    }
}

// Offers the lengths of a candidate above `shorter`, and the longest one with a repeat after it.
template <typename Position>
void BitBackwardParser<Position>::offer_candidate(std::uint32_t position, unsigned candidate,
                                                  std::uint32_t shorter, ClassLanes& items) {
    const WayMatch match = candidates_.at(position, candidate);
    if (match.length <= shorter) {
        return;
    }
    const std::int32_t cost = offset_cost(match.offset);
    offer_match(position, candidate, match.length, cost, shorter, items);
    const std::int32_t gain = gain_of_repeat(position + match.length, match);
    if (gain > 0) {
        offer(position, {candidate, match.length, 1, cost - gain}, items);
    }
}

// Makes `items` the cheapest matches at a position, by the class of the literals before it.
template <typename Position>
void BitBackwardParser<Position>::offer_candidates(std::uint32_t position, ClassLanes& items) {
    items = kNoItem - ClassLanes{};
    std::uint32_t shorter = kShortLength - 1;
    const std::uint32_t short_offset = candidates_.offset_at(position, kShortMatch);
    if (short_offset != 0) {
        offer(position, {kShortMatch, kShortLength, 1, offset_cost(short_offset)}, items);
        shorter = kShortLength;
    }
    offer_candidate(position, kNearestMatch, shorter, items);
    shorter = std::max(shorter, candidates_.at(position, kNearestMatch).length);
    offer_candidate(position, kBestMatch, shorter, items);
    const WayMatch other = candidates_.from_dictionary(position);
    if (other.length != 0) {
        const std::uint32_t symbol = address_field(other.offset).symbol;
        offer_match(position, kDictionaryMatch, other.length, costs_.offset[symbol], kShortLength,
                    items);
    }
}

// Chooses what to do at a position. `states` are the costs of the position after, by the literals
// before it, and become those of the position.
template <typename Position>
void BitBackwardParser<Position>::choose(std::uint32_t position, States& states) {
    const std::int32_t after = costs_from_[position + 1];
    ClassLanes items;
    offer_candidates(position, items);
    const std::int32_t literal = costs_.literal[content_[position]];
    Choices& choices = choices_[position];
    for (int each = 0; each < kNumLiteralClasses; ++each) {
        choices[each] = static_cast<std::uint16_t>(items[each] & kItemMask);
    }
    for (int state = 0; state < kNumLiteralStates; ++state) {
        const int literal_class = literal_class_of(state);
        const std::int32_t with_match = after + cost_of_item(items[literal_class]);
        const std::int32_t with_literal = states[state + 1] + literal;
        if (with_match < with_literal) {
            choices[literal_class] |= static_cast<std::uint16_t>(taken_bit(state));
        }
        states[state] = std::min(with_match, with_literal);
    }
    states[kNumLiteralStates] = states[kLastLiteralState];
    costs_from_[position] = states[0];
    repeats_[position] = 0;
}

// The states at the end of a segment. Literals at the end of the block need a sequence, too.
template <typename Position>
typename BitBackwardParser<Position>::States BitBackwardParser<Position>::states_after(
    std::uint32_t end) const {
    States states;
    states.fill(costs_from_[end]);
    for (int state = 1; end == size_ && state <= kNumLiteralStates; ++state) {
        states[state] = costs_.token_of(std::min(state, kLastLiteralState), 0);
    }
    return states;
}

template <typename Position>
void BitBackwardParser<Position>::find_ways(std::uint32_t begin, std::uint32_t end) {
    segment_end_ = end;
    States states = states_after(end);
    CancellationPoint point;
    for (std::uint32_t position = end; position-- > begin;) {
        point();
        choose(position, states);
    }
}

// Makes the sequences of the cheapest way.
template <typename Position>
void BitBackwardParser<Position>::follow(std::vector<Sequence>& sequences) const {
    sequences.clear();
    std::uint32_t anchor = 0;
    for (std::uint32_t position = 0; position < size_;) {
        const std::uint32_t num_literals = position - anchor;
        if (num_literals == kBitMaxLiteralLength) {
            sequences.push_back({num_literals, 0, 0});
            anchor = position;
            continue;
        }
        const int state = std::min(static_cast<int>(num_literals), kLastLiteralState);
        const std::uint32_t choice = choices_[position][literal_class_of(state)];
        if ((choice & taken_bit(state)) == 0) {
            ++position;
            continue;
        }
        const std::uint32_t offset = candidates_.offset_at(position, choice_candidate(choice));
        sequences.push_back({num_literals, choice_length(choice), offset});
        position += choice_length(choice);
        while (repeat_offset(repeats_[position]) == offset &&
               sequences.size() % kNumSubBlocks != 0) {
            const std::uint64_t repeat = repeats_[position];
            sequences.push_back({repeat_literals(repeat), repeat_length(repeat), offset});
            position += repeat_literals(repeat) + repeat_length(repeat);
        }
        anchor = position;
    }
    if (anchor < size_) {
        sequences.push_back({size_ - anchor, 0, 0});
    }
}

template <typename Position>
void BitBackwardParser<Position>::parse(Bytes content, const ParserLimits& limits,
                                        const SearchEffort& effort,
                                        std::vector<Sequence>& sequences) {
    content_ = content;
    size_ = static_cast<std::uint32_t>(content.size());
    candidates_.fill(content, limits, effort);
    costs_from_.resize(size_ + 1);
    for (std::uint32_t position = 0; position <= size_; ++position) {
        costs_from_[position] = static_cast<std::int32_t>(size_ - position) * kFirstByteCost;
    }
    repeats_.assign(size_ + 1, 0);
    choices_.resize(size_);
    for (unsigned pass = 0; pass < kNumPasses; ++pass) {
        costs_ = pass == 0 ? first_costs() : costs_of(content, sequences);
        for (std::uint32_t begin = 0; begin < size_; begin += segment_size(size_)) {
            find_ways(begin, std::min(begin + segment_size(size_), size_));
        }
        follow(sequences);
    }
}

template <typename Position>
void parse_positions(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                     std::vector<Sequence>& sequences) {
    thread_local const auto parser = std::make_unique<BitBackwardParser<Position>>();
    parser->parse(content, limits, effort, sequences);
}

}  // namespace

void parse_bit_block_backwards(Bytes content, const ParserLimits& limits,
                               const SearchEffort& effort, std::vector<Sequence>& sequences) {
    const auto parse = content.size() > kMaxNarrowBlock ? parse_positions<std::uint32_t>
                                                        : parse_positions<std::uint16_t>;
    parse(content, limits, effort, sequences);
}

}  // namespace gompfs

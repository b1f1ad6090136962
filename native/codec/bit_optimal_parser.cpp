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

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "codec/bit_costs.h"
#include "codec/match_length.h"
#include "codec/match_table.h"
#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr std::int32_t kUnreachable = 1 << 26;

// A way that costs this much more than another way to the same position is given up.
constexpr std::int32_t kHopeless = 12 * kBitCost;

// The lengths of a match are tried from the longest down, until this many were useless.
constexpr int kMaxUseless = 2;

// Number of positions that are parsed together.
constexpr std::uint32_t kWindowSize = 16384;

// The cost of a way to a match is shifted left, and the literal class of its sequence is stored in
// the low bits: the minimum of several ways then also tells its class.
constexpr int kClassShift = 3;
constexpr std::int32_t kClassMask = (1 << kClassShift) - 1;
static_assert(kNumLiteralClasses == 1 << kClassShift);

// Classes below this one are the literal length itself. The last class has no upper limit.
constexpr int kFirstWideClass = 5;
constexpr int kLongClass = kNumLiteralClasses - 1;
static_assert(kLiteralClassBase[kFirstWideClass] == kFirstWideClass && kLongClass == 7);
constexpr std::uint32_t kLongLength = kLiteralClassBase[kLongClass];
constexpr std::uint32_t kMaxLiterals = kBitMaxLiteralLength;
constexpr std::uint32_t kMinMatch = kBitMinMatchLength;

// The literal lengths that the classes 5, 6 and 7 stand for before a position, packed into one
// number.
constexpr int kLengthsShift[] = {0, 4, 8};
constexpr std::uint32_t kLengthsMask[] = {15, 15, 511};

// A sequence: literal class, match length, match offset.
constexpr std::int32_t pack_link(std::uint32_t match_length, std::uint32_t match_offset) {
    return static_cast<std::int32_t>(match_offset << 12 | match_length << kClassShift);
}
constexpr std::uint32_t link_literal_class(std::uint32_t link) { return link & kClassMask; }
constexpr std::uint32_t link_match_length(std::uint32_t link) { return link >> kClassShift & 511; }
constexpr std::uint32_t link_match_offset(std::uint32_t link) { return link >> 12; }

// The progress of a row: its number of sequences so far, and its last match offset.
constexpr std::int32_t pack_row(std::uint32_t num_sequences, std::uint32_t last_offset) {
    return static_cast<std::int32_t>(last_offset << 5 | num_sequences);
}
constexpr std::uint32_t row_last_offset(std::int32_t row) {
    return static_cast<std::uint32_t>(row) >> 5;
}
constexpr std::int32_t row_behind(std::int32_t row, std::uint32_t match_offset) {
    const std::uint32_t num_sequences = (static_cast<std::uint32_t>(row) + 1) % kNumSubBlocks;
    const std::uint32_t last_offset = match_offset != 0 ? match_offset : row_last_offset(row);
    return pack_row(num_sequences, num_sequences == 0 ? 0 : last_offset);
}
static_assert(kNumSubBlocks == 1 << 5);

constexpr std::uint32_t kNumPhases = 1u << kDefaultGroupSizeLog2;
constexpr std::uint32_t phase_after(std::uint32_t phase) { return (phase + 1) % kNumPhases; }
constexpr std::uint32_t phase_before(std::uint32_t phase) {
    return (phase + kNumPhases - 1) % kNumPhases;
}

// A number per phase.
typedef std::int32_t Lanes __attribute__((vector_size(sizeof(std::int32_t) * kNumPhases)));

Lanes all(std::int32_t value) { return value - Lanes{}; }
Lanes lower(const Lanes& left, const Lanes& right) { return left < right ? left : right; }

bool any(const Lanes& mask) {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(mask);
    return (halves[0] | halves[1]) != 0;
}

std::int32_t least(const Lanes& lanes) {
    return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

class BitOptimalParser {
  public:
    // Parses content from `first` on; the bytes before can be copied from.
    void parse(Bytes content, std::uint32_t first, bool dependency_elimination,
               const MatchTable& matches, const BitCosts& costs, std::vector<Sequence>& sequences);

  private:
    // For each phase, the cheapest way to end a sequence at a position.
    struct States {
        Lanes cost;  // minus the cost of all bytes before the position as literals
        Lanes link;  // the last sequence
        Lanes row;
        Lanes high_water_mark;
        Lanes lengths;  // packed literal lengths before a match that begins here
    };

    States& at(std::uint32_t position) { return states_[position + kLongLength - begin_]; }
    std::int32_t literals_cost(std::uint32_t position) const {
        return literals_cost_[position - begin_];
    }
    std::int32_t offset_cost(std::uint32_t offset) const {
        return costs_->offset[offset_field(offset, false).symbol];
    }
    void set_costs(const BitCosts& costs);
    void start_window(const std::vector<Sequence>& sequences);
    void parse_window();
    void settle(std::uint32_t position);
    const States& state_before(std::uint32_t position, std::uint32_t phase);
    std::uint32_t literal_length(std::uint32_t position, std::uint32_t phase,
                                 std::uint32_t literal_class);
    void pass_literal(std::uint32_t position);
    void end_full_sequences(std::uint32_t position);
    bool worth_offering(std::uint32_t position);
    bool may_be_cheaper(std::uint32_t position, std::uint32_t length, std::int32_t cost);
    void weigh_literals(std::uint32_t position);
    void weigh_class(std::uint32_t position, int literal_class);
    void give_up_hopeless(std::uint32_t position);
    const Lanes& cheapest(int match_class);
    void offer_matches(std::uint32_t position);
    void offer_lengths(std::uint32_t position, std::uint32_t first, std::uint32_t last,
                       std::uint32_t offset, std::int32_t cost);
    void offer_near(std::uint32_t position, const FoundMatch& match);
    void offer_repeats(std::uint32_t node);
    std::uint32_t literals_before_repeat(std::uint32_t node, std::uint32_t offset) const;
    void offer_repeat(std::uint32_t node, std::uint32_t phase, std::uint32_t offset,
                      std::uint32_t num_literals);
    std::uint32_t legal_length(std::uint32_t node, std::uint32_t phase, std::uint32_t source,
                               std::uint32_t position, std::uint32_t length);
    std::uint32_t commit(std::vector<Sequence>& sequences);

    Bytes content_;
    std::uint32_t size_ = 0;
    bool has_rule_ = false;  // whether dependency elimination applies
    const MatchTable* matches_ = nullptr;
    const BitCosts* costs_ = nullptr;
    // By match class: the costs of the tokens of all literal classes, shifted and with their class,
    // and the least cost.
    std::array<std::array<std::int32_t, kNumLiteralClasses>, kNumMatchClasses> token_cost_;
    std::array<std::int32_t, kNumMatchClasses> least_token_cost_;

    std::uint32_t begin_ = 0;  // start of the window; a group begins there
    std::uint32_t end_ = 0;
    std::vector<States> states_;  // by position of the window, after kLongLength unreachable ones
    std::vector<std::int32_t> literals_cost_;  // from the start of the window
    // The least cost of the states from which literals may reach the present position.
    std::int32_t least_cost_ = 0;

    // The cheapest states from which a long literal string reaches the present position.
    Lanes long_begin_{};
    Lanes long_cost_{};
    Lanes long_high_water_mark_{};
    std::uint32_t first_full_ = 0;  // no string reaches its greatest length before this position

    // The ways to a match that begins at the present position, by the class of the literals before
    // it.
    std::array<Lanes, kNumLiteralClasses> way_cost_;
    std::array<Lanes, kNumLiteralClasses> high_water_mark_;
    std::uint32_t final_below_ = 0;  // output below it is legal to copy for all these ways
    std::array<Lanes, kNumMatchClasses> cheapest_;         // the cheapest way, by match class
    std::uint32_t has_cheapest_ = 0;                       // a bit for each match class
    std::array<FoundMatch, MatchTable::kMaxFound> legal_;  // each longer than the nearer ones
    std::vector<Sequence> way_;                            // last sequence first
};

void BitOptimalParser::parse(Bytes content, std::uint32_t first, bool dependency_elimination,
                             const MatchTable& matches, const BitCosts& costs,
                             std::vector<Sequence>& sequences) {
    content_ = content;
    size_ = static_cast<std::uint32_t>(content.size());
    has_rule_ = dependency_elimination;
    matches_ = &matches;
    set_costs(costs);
    const std::uint32_t num_positions = std::min(size_ - first, kWindowSize) + 1;
    states_.resize(num_positions + kLongLength);
    literals_cost_.resize(num_positions);
    sequences.clear();
    for (begin_ = first; begin_ < size_; begin_ = commit(sequences)) {
        throw_if_cancelled();
        end_ = begin_ + std::min(size_ - begin_, kWindowSize);
        start_window(sequences);
        parse_window();
    }
}

void BitOptimalParser::set_costs(const BitCosts& costs) {
    costs_ = &costs;
    for (int match_class = 0; match_class < kNumMatchClasses; ++match_class) {
        auto& token_cost = token_cost_[match_class];
        for (int literal_class = 0; literal_class < kNumLiteralClasses; ++literal_class) {
            const int symbol = literal_class * kNumMatchClasses + match_class;
            token_cost[literal_class] = costs.token[symbol] << kClassShift | literal_class;
        }
        least_token_cost_[match_class] =
            *std::min_element(token_cost.begin(), token_cost.end()) >> kClassShift;
    }
}

void BitOptimalParser::start_window(const std::vector<Sequence>& sequences) {
    for (States& states : states_) {
        states.cost = all(kUnreachable);
        states.link = Lanes{};
        states.high_water_mark = Lanes{};
    }
    literals_cost_[0] = 0;
    for (std::uint32_t index = 0; index < end_ - begin_; ++index) {
        literals_cost_[index + 1] =
            literals_cost_[index] + costs_->literal[content_[begin_ + index]];
    }
    const auto num_in_row = static_cast<std::uint32_t>(sequences.size() % kNumSubBlocks);
    std::uint32_t last_offset = 0;
    for (std::uint32_t back = 1; back <= num_in_row && last_offset == 0; ++back) {
        last_offset = sequences[sequences.size() - back].match_offset;
    }
    States& first = at(begin_);
    first.cost[0] = 0;
    first.row[0] = pack_row(num_in_row, last_offset);
    first.high_water_mark[0] = static_cast<std::int32_t>(begin_);
    least_cost_ = 0;
    long_begin_ = all(static_cast<std::int32_t>(begin_));
    long_cost_ = all(kUnreachable);
    long_high_water_mark_ = Lanes{};
    first_full_ = begin_ + kMaxLiterals;
}

void BitOptimalParser::parse_window() {
    for (std::uint32_t position = begin_; position < end_; ++position) {
        if (worth_offering(position)) {
            weigh_literals(position);
            offer_matches(position);
        }
        offer_repeats(position);
        settle(position + 1);
        pass_literal(position + 1);
    }
    weigh_literals(end_);
}

// Completes the states of a position to which all matches have been offered.
void BitOptimalParser::settle(std::uint32_t position) {
    States& here = at(position);
    here.cost -= literals_cost(position);
    const Lanes hopeful = here.cost <= least_cost_ + kHopeless;
    here.cost = hopeful ? here.cost : all(kUnreachable);
    if (!any(hopeful)) {
        return;
    }
    least_cost_ = std::min(least_cost_, least(here.cost));
    Lanes row;
    Lanes high_water_mark;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const States& from = state_before(position, phase);
        const auto link = static_cast<std::uint32_t>(here.link[phase]);
        row[phase] = row_behind(from.row[phase_before(phase)], link_match_offset(link));
        high_water_mark[phase] = from.high_water_mark[phase_before(phase)];
    }
    high_water_mark[0] = static_cast<std::int32_t>(position);
    here.row = row;
    here.high_water_mark = high_water_mark;
}

// The state from which the last sequence of a state begins.
const BitOptimalParser::States& BitOptimalParser::state_before(std::uint32_t position,
                                                               std::uint32_t phase) {
    const auto link = static_cast<std::uint32_t>(at(position).link[phase]);
    const std::uint32_t match_begin = position - link_match_length(link);
    return at(match_begin -
              literal_length(match_begin, phase_before(phase), link_literal_class(link)));
}

// The number of literals before a match that begins at `position`, after a state of `phase`.
std::uint32_t BitOptimalParser::literal_length(std::uint32_t position, std::uint32_t phase,
                                               std::uint32_t literal_class) {
    if (literal_class < kFirstWideClass) {
        return literal_class;
    }
    const auto lengths = static_cast<std::uint32_t>(at(position).lengths[phase]);
    const std::uint32_t index = literal_class - kFirstWideClass;
    return lengths >> kLengthsShift[index] & kLengthsMask[index];
}

// Updates the best start of the long literal strings that reach a position.
void BitOptimalParser::pass_literal(std::uint32_t position) {
    const std::uint32_t begin = position - kLongLength;
    const States& newest = at(begin);
    const Lanes cheaper = newest.cost <= long_cost_;
    long_cost_ = cheaper ? newest.cost : long_cost_;
    long_high_water_mark_ = cheaper ? newest.high_water_mark : long_high_water_mark_;
    long_begin_ = cheaper ? all(static_cast<std::int32_t>(begin)) : long_begin_;
    if (position >= first_full_) [[unlikely]] {
        end_full_sequences(position);
    }
}

// A literal string that is too long for one sequence: a sequence without a match ends with its last
// literal.
void BitOptimalParser::end_full_sequences(std::uint32_t position) {
    States& here = at(position);
    here.lengths = (static_cast<std::int32_t>(position) - long_begin_)
                   << kLengthsShift[kLongClass - kFirstWideClass];
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        if (literal_length(position, phase, kLongClass) < kMaxLiterals) {
            continue;
        }
        const std::uint32_t next = phase_after(phase);
        const std::int32_t cost = long_cost_[phase] + costs_->token[kLongClass * kNumMatchClasses];
        if (cost < std::min(here.cost[next], kUnreachable)) {
            here.cost[next] = cost;
            here.link[next] = kLongClass;
            const States& from = state_before(position, next);
            here.row[next] = row_behind(from.row[phase], 0);
            here.high_water_mark[next] =
                next == 0 ? static_cast<std::int32_t>(position) : from.high_water_mark[phase];
        }
        long_cost_[phase] = kUnreachable;
    }
    first_full_ = static_cast<std::uint32_t>(least(long_begin_)) + kMaxLiterals;
    least_cost_ = least(long_cost_);
    for (std::uint32_t length = 0; length < kLongLength; ++length) {
        least_cost_ = std::min(least_cost_, least(at(position - length).cost));
    }
}

// Whether a match that begins at a position may be cheaper than what was offered to some position.
bool BitOptimalParser::worth_offering(std::uint32_t position) {
    const std::int32_t way = least_cost_ + literals_cost(position);
    for (const FoundMatch& match : matches_->at(position)) {
        const std::uint32_t length = std::min(match.length, end_ - position);
        const std::int32_t cost = way + offset_cost(match.offset);
        static_assert(kMaxUseless == 2);
        if (may_be_cheaper(position, length, cost) || may_be_cheaper(position, length - 1, cost)) {
            return true;
        }
    }
    return false;
}

bool BitOptimalParser::may_be_cheaper(std::uint32_t position, std::uint32_t length,
                                      std::int32_t cost) {
    return length >= kMinMatch &&
           any(at(position + length).cost > cost + least_token_cost_[kMatchClassOf[length]]);
}

// For each literal class, finds the cheapest way to a match that begins at a position.
void BitOptimalParser::weigh_literals(std::uint32_t position) {
    States* const here = &at(position);
    for (int length = 0; length < kFirstWideClass; ++length) {
        way_cost_[length] = here[-length].cost;
        high_water_mark_[length] = here[-length].high_water_mark;
    }
    here->lengths = (static_cast<std::int32_t>(position) - long_begin_)
                    << kLengthsShift[kLongClass - kFirstWideClass];
    for (int literal_class = kFirstWideClass; literal_class < kLongClass; ++literal_class) {
        weigh_class(position, literal_class);
    }
    way_cost_[kLongClass] = long_cost_;
    high_water_mark_[kLongClass] = long_high_water_mark_;
    for (Lanes& cost : way_cost_) {
        cost = (cost + literals_cost(position)) << kClassShift;
    }
    give_up_hopeless(position);
    has_cheapest_ = 0;
}

// A class of a few lengths.
void BitOptimalParser::weigh_class(std::uint32_t position, int literal_class) {
    States* const here = &at(position);
    const int shortest = kLiteralClassBase[literal_class];
    Lanes cost = here[-shortest].cost;
    Lanes high_water_mark = here[-shortest].high_water_mark;
    Lanes lengths = all(shortest);
    for (int length = shortest + 1; length < kLiteralClassBase[literal_class + 1]; ++length) {
        const States& from = here[-length];
        const Lanes cheaper = from.cost < cost;
        cost = cheaper ? from.cost : cost;
        high_water_mark = cheaper ? from.high_water_mark : high_water_mark;
        lengths = cheaper ? all(length) : lengths;
    }
    way_cost_[literal_class] = cost;
    high_water_mark_[literal_class] = high_water_mark;
    here->lengths |= lengths << kLengthsShift[literal_class - kFirstWideClass];
}

void BitOptimalParser::give_up_hopeless(std::uint32_t position) {
    const std::int32_t bound = (least_cost_ + literals_cost(position) + kHopeless) << kClassShift;
    Lanes final_below = all(static_cast<std::int32_t>(position));
    for (int literal_class = 0; literal_class < kNumLiteralClasses; ++literal_class) {
        Lanes& cost = way_cost_[literal_class];
        const Lanes hopeless = cost > bound;
        cost = hopeless ? all(kUnreachable << kClassShift) : cost;
        final_below = hopeless ? final_below : lower(final_below, high_water_mark_[literal_class]);
    }
    final_below_ = has_rule_ ? static_cast<std::uint32_t>(least(final_below)) : size_;
}

// The cost of the cheapest ways to the end of a match of a class, without the cost of its offset,
// by the phase after the match.
const Lanes& BitOptimalParser::cheapest(int match_class) {
    Lanes& result = cheapest_[match_class];
    if ((has_cheapest_ >> match_class & 1) == 0) {
        has_cheapest_ |= 1u << match_class;
        const auto& token_cost = token_cost_[match_class];
        result = way_cost_[0] + token_cost[0];
        for (int literal_class = 1; literal_class < kNumLiteralClasses; ++literal_class) {
            result = lower(result, way_cost_[literal_class] + token_cost[literal_class]);
        }
        result = __builtin_shufflevector(result, result, 3, 0, 1, 2);
    }
    return result;
}

// Offers the matches that begin at a position to the positions where they may end.
void BitOptimalParser::offer_matches(std::uint32_t position) {
    std::size_t num_legal = 0;
    std::uint32_t longest = kMinMatch - 1;
    for (const FoundMatch& match : matches_->at(position)) {
        const std::uint32_t length = std::min(match.length, end_ - position);
        if (length <= longest) {
            continue;
        }
        if (position - match.offset + length <= final_below_ || !has_rule_) {
            legal_[num_legal++] = {match.offset, length};
            longest = length;
        } else {
            offer_near(position, {match.offset, length});
        }
    }
    // Each match takes the lengths that no nearer match has, and all lengths of nearer matches that
    // cost more.
    std::uint32_t offset = 0;
    std::int32_t cost = kUnreachable;
    for (std::size_t index = num_legal; index-- > 0;) {
        const FoundMatch& match = legal_[index];
        const std::int32_t match_cost = offset_cost(match.offset);
        offset = match_cost <= cost ? match.offset : offset;
        cost = std::min(match_cost, cost);
        const std::uint32_t nearer_length = index == 0 ? kMinMatch - 1 : legal_[index - 1].length;
        offer_lengths(position, nearer_length + 1, match.length, offset, cost);
    }
}

void BitOptimalParser::offer_lengths(std::uint32_t position, std::uint32_t first,
                                     std::uint32_t last, std::uint32_t offset, std::int32_t cost) {
    int num_useless = 0;
    for (std::uint32_t length = last; length >= first && num_useless < kMaxUseless; --length) {
        States& target = at(position + length);
        const Lanes& way = cheapest(kMatchClassOf[length]);
        const Lanes total = (way >> kClassShift) + cost;
        const Lanes link = (way & kClassMask) | pack_link(length, offset);
        const Lanes cheaper = total < target.cost;
        target.cost = cheaper ? total : target.cost;
        target.link = cheaper ? link : target.link;
        num_useless += !any(cheaper);
    }
}

// Offers a match whose source may reach into the open group: for the best way of each phase, the
// part that is legal for that way.
void BitOptimalParser::offer_near(std::uint32_t position, const FoundMatch& match) {
    const Lanes ways = cheapest(kMatchClassOf[match.length]);
    const std::int32_t cost = offset_cost(match.offset);
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const std::uint32_t next = phase_after(phase);
        if (ways[next] >= kUnreachable << kClassShift) {
            continue;
        }
        const auto literal_class = static_cast<std::uint32_t>(ways[next] & kClassMask);
        const std::uint32_t node = position - literal_length(position, phase, literal_class);
        std::uint32_t length =
            legal_length(node, phase, position - match.offset, position, match.length);
        for (int num_useless = 0; length >= kMinMatch && num_useless < kMaxUseless; --length) {
            const std::int32_t way =
                way_cost_[literal_class][phase] + token_cost_[kMatchClassOf[length]][literal_class];
            const std::int32_t total = (way >> kClassShift) + cost;
            States& target = at(position + length);
            if (total < target.cost[next]) {
                target.cost[next] = total;
                target.link[next] = pack_link(length, match.offset) | (way & kClassMask);
            } else {
                ++num_useless;
            }
        }
    }
}

// Offers, after the states of a position, a few literals and then a match with the last offset
// again.
void BitOptimalParser::offer_repeats(std::uint32_t node) {
    if (end_ - node < sizeof(std::uint64_t)) {
        return;
    }
    const States& here = at(node);
    std::uint32_t offset = 0;
    std::uint32_t num_literals = 0;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        if (here.cost[phase] == kUnreachable) {
            continue;
        }
        if (row_last_offset(here.row[phase]) != offset) {
            offset = row_last_offset(here.row[phase]);
            num_literals = offset == 0 ? 0 : literals_before_repeat(node, offset);
        }
        if (num_literals != 0) {
            offer_repeat(node, phase, offset, num_literals);
        }
    }
}

// The number of literals before a match with the last offset; 0 if there are too many.
std::uint32_t BitOptimalParser::literals_before_repeat(std::uint32_t node,
                                                       std::uint32_t offset) const {
    const std::uint8_t* const bytes = content_.data() + node;
    const std::uint64_t differs = load<std::uint64_t>(bytes) ^ load<std::uint64_t>(bytes - offset);
    if ((differs & 255) == 0) {
        return 0;  // the match before could have been longer
    }
    const std::uint64_t one_of_three_differs = differs | differs >> 8 | differs >> 16;
    for (int num_literals = 1; num_literals < kFirstWideClass; ++num_literals) {
        if ((one_of_three_differs >> 8 * num_literals & 255) == 0) {
            return static_cast<std::uint32_t>(num_literals);
        }
    }
    return 0;
}

void BitOptimalParser::offer_repeat(std::uint32_t node, std::uint32_t phase, std::uint32_t offset,
                                    std::uint32_t num_literals) {
    const std::uint32_t position = node + num_literals;
    const std::uint32_t source = position - offset;
    const std::uint32_t same =
        common_length(content_.data() + source, content_.data() + position,
                      std::min<std::uint32_t>(end_ - position, kBitMaxMatchLength));
    const std::uint32_t next = phase_after(phase);
    const std::int32_t way =
        at(node).cost[phase] + literals_cost(position) + costs_->offset[kOffsetSymbolRepeat];
    const std::int32_t* const token_cost = &costs_->token[num_literals * kNumMatchClasses];
    for (std::uint32_t length = legal_length(node, phase, source, position, same);
         length >= kMinMatch; --length) {
        const std::int32_t total = way + token_cost[kMatchClassOf[length]];
        States& target = at(position + length);
        if (total >= target.cost[next]) {
            return;
        }
        target.cost[next] = total;
        target.link[next] = pack_link(length, offset) | static_cast<std::int32_t>(num_literals);
    }
}

// The length of a match at `position` that may be copied from `source`, after a state at `node` and
// literals: up to the next match of the open group.
std::uint32_t BitOptimalParser::legal_length(std::uint32_t node, std::uint32_t phase,
                                             std::uint32_t source, std::uint32_t position,
                                             std::uint32_t length) {
    const auto high_water_mark = static_cast<std::uint32_t>(at(node).high_water_mark[phase]);
    if (!has_rule_ || source + length <= high_water_mark) {
        return length;
    }
    std::uint32_t legal_end = std::min(source + length, position);
    for (; phase > 0 && source < node; --phase) {
        const auto link = static_cast<std::uint32_t>(at(node).link[phase]);
        const std::uint32_t match_begin = node - link_match_length(link);
        if (source >= match_begin) {
            return 0;
        }
        legal_end = match_begin < node ? std::min(legal_end, match_begin) : legal_end;
        node = match_begin - literal_length(match_begin, phase - 1, link_literal_class(link));
    }
    return legal_end - source;
}

// Appends the cheapest way through the window, and returns where it ends. Before the end of the
// block that is the end of the last complete group before the window's end: a match that reaches
// the window's end may have been cut there.
std::uint32_t BitOptimalParser::commit(std::vector<Sequence>& sequences) {
    static_assert(kWindowSize > (kNumPhases + 1) * (kBitMaxLiteralLength + kBitMaxMatchLength));
    way_cost_[0] -= token_cost_[0][0];  // without literals left, no sequence is needed
    const Lanes ways = cheapest(0);
    std::uint32_t phase = 0;
    for (std::uint32_t other = 1; other < kNumPhases; ++other) {
        phase = ways[phase_after(other)] < ways[phase_after(phase)] ? other : phase;
    }
    std::uint32_t literals = literal_length(end_, phase, ways[phase_after(phase)] & kClassMask);
    std::uint32_t node = end_ - literals;
    std::uint32_t committed = end_ == size_ ? end_ : begin_;
    way_.clear();
    if (literals > 0) {
        way_.push_back({literals, 0, 0});
    }
    while (node > begin_) {
        if (committed == begin_ && phase == 0 && node < end_) {
            committed = node;
            way_.clear();
        }
        const auto link = static_cast<std::uint32_t>(at(node).link[phase]);
        const std::uint32_t match_begin = node - link_match_length(link);
        phase = phase_before(phase);
        literals = literal_length(match_begin, phase, link_literal_class(link));
        way_.push_back({literals, node - match_begin, link_match_offset(link)});
        node = match_begin - literals;
    }
    sequences.insert(sequences.end(), way_.rbegin(), way_.rend());
    return committed;
}

// A first guess at the sequences: the longest matches that seem worth their offset, unless the next
// position has a longer one.
void guess_sequences(std::uint32_t size, const MatchTable& matches,
                     std::vector<Sequence>& sequences) {
    const auto longest = [&](std::uint32_t position) {
        const std::span<const FoundMatch> found = matches.at(position);
        return found.empty() ? FoundMatch{0, 0} : found.back();
    };
    const auto pays = [](const FoundMatch& match) {
        return static_cast<std::uint32_t>(std::bit_width(match.offset)) + 3 <= 4 * match.length;
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
    BitOptimalParser parser;
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
    matches.fill(content, limits, effort);
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

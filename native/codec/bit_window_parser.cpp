// Windows, states, and the literals between them; see bit_window_parser.h.
#include "codec/bit_window_parser.h"

#include <algorithm>

#include "common/cancellation.h"

namespace gompfs {

void BitWindowParser::parse(Bytes content, std::uint32_t first, bool dependency_elimination,
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

void BitWindowParser::set_costs(const BitCosts& costs) {
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

void BitWindowParser::start_window(const std::vector<Sequence>& sequences) {
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
        last_offset = last_offset_after(0, sequences[sequences.size() - back].match_offset);
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

void BitWindowParser::parse_window() {
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
void BitWindowParser::settle(std::uint32_t position) {
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
        row[phase] = row_after(from.row[phase_before(phase)], link_match_offset(link));
        high_water_mark[phase] = from.high_water_mark[phase_before(phase)];
    }
    high_water_mark[0] = static_cast<std::int32_t>(position);
    here.row = row;
    here.high_water_mark = high_water_mark;
}

// The state from which the last sequence of a state begins.
const BitWindowParser::States& BitWindowParser::state_before(std::uint32_t position,
                                                             std::uint32_t phase) {
    const auto link = static_cast<std::uint32_t>(at(position).link[phase]);
    const std::uint32_t match_begin = position - link_match_length(link);
    return at(match_begin -
              literal_length(match_begin, phase_before(phase), link_literal_class(link)));
}

// Updates the best start of the long literal strings that reach a position.
void BitWindowParser::pass_literal(std::uint32_t position) {
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
void BitWindowParser::end_full_sequences(std::uint32_t position) {
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
            here.row[next] = row_after(from.row[phase], 0);
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

// For each literal class, finds the cheapest way to a match that begins at a position.
void BitWindowParser::weigh_literals(std::uint32_t position) {
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
void BitWindowParser::weigh_class(std::uint32_t position, int literal_class) {
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

void BitWindowParser::give_up_hopeless(std::uint32_t position) {
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

// The offset of the match of a link, which begins at a position.
std::uint32_t BitWindowParser::match_offset(std::uint32_t position, std::uint32_t link) const {
    const std::uint32_t offset = link_match_offset(link);
    return is_candidate(offset) && matches_->has_dictionary()
               ? matches_->from_dictionary(position)[offset - kFirstCandidate].offset
               : offset;
}

// Appends the cheapest way through the window, and returns where it ends. Before the end of the
// block that is the end of the last complete group before the window's end: a match that reaches
// the window's end may have been cut there.
std::uint32_t BitWindowParser::commit(std::vector<Sequence>& sequences) {
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
        way_.push_back({literals, node - match_begin, match_offset(match_begin, link)});
        node = match_begin - literals;
    }
    sequences.insert(sequences.end(), way_.rbegin(), way_.rend());
    return committed;
}

}  // namespace gompfs

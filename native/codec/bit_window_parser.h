// The window parser of gompresso-bit: the dynamic programming of bit_optimal_parser.cpp, which
// explains the algorithm. bit_window_parser.cpp has the states and the literals between them,
// bit_window_offers.cpp the matches that are offered to them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/bit_costs.h"
#include "codec/bit_states.h"
#include "codec/match_table.h"
#include "codec/parser.h"

namespace gompfs {

constexpr std::int32_t kUnreachable = 1 << 26;

// A way that costs this much more than another way to the same position is given up.
constexpr std::int32_t kHopeless = 12 * kBitCost;

// The lengths of a match are tried from the longest down, until this many were useless.
constexpr int kMaxUseless = 2;

// Number of positions that are parsed together.
constexpr std::uint32_t kWindowSize = 16384;

class BitWindowParser {
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
    // The number of literals before a match that begins at `position`, after a state of `phase`.
    std::uint32_t literal_length(std::uint32_t position, std::uint32_t phase,
                                 std::uint32_t literal_class) {
        if (literal_class < kFirstWideClass) {
            return literal_class;
        }
        const auto lengths = static_cast<std::uint32_t>(at(position).lengths[phase]);
        const std::uint32_t index = literal_class - kFirstWideClass;
        return lengths >> kLengthsShift[index] & kLengthsMask[index];
    }
    void pass_literal(std::uint32_t position);
    void end_full_sequences(std::uint32_t position);
    bool worth_offering(std::uint32_t position);
    bool is_worth_offering(std::uint32_t position, const FoundMatch& match, std::int32_t way);
    bool may_be_cheaper(std::uint32_t position, std::uint32_t length, std::int32_t cost);
    void weigh_literals(std::uint32_t position);
    void weigh_class(std::uint32_t position, int literal_class);
    void give_up_hopeless(std::uint32_t position);
    const Lanes& cheapest(int match_class);
    void offer_matches(std::uint32_t position);
    void offer_from_dictionary(std::uint32_t position);
    void offer_lengths(std::uint32_t position, std::uint32_t first, std::uint32_t last,
                       std::uint32_t offset, std::int32_t cost);
    void offer_near(std::uint32_t position, const FoundMatch& match);
    void offer_repeats(std::uint32_t node);
    std::uint32_t literals_before_repeat(std::uint32_t node, std::uint32_t offset) const;
    void offer_repeat(std::uint32_t node, std::uint32_t phase, std::uint32_t offset,
                      std::uint32_t num_literals);
    std::uint32_t legal_length(std::uint32_t node, std::uint32_t phase, std::uint32_t source,
                               std::uint32_t position, std::uint32_t length);
    std::uint32_t match_offset(std::uint32_t position, std::uint32_t link) const;
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

}  // namespace gompfs

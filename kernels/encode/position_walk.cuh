// The steps of the lazy parser from a position on, without dependency elimination: which matches it
// searches and takes (native/codec/parse/lazy_parser.cpp).
#pragma once

#include "encode/best_match.cuh"

namespace gompfs {

struct WalkRules {
    SearchRules search;
    u32 lazy_steps;
    u32 misses_to_skip_log2;
    u32 max_literal_length;
    bool later_ends_later;  // deferring: a match must end after the one at hand
};

// The settings as kernels get them: in the order of the fields in gompfs/gpu/encode/parser.py.
struct WalkSettings {
    u32 chain_length, nice_length, max_match_length, max_match_offset, finds_short, lazy_steps,
        skips, max_literal_length, later_ends_later;
};

__device__ inline WalkRules walk_rules(const WalkSettings& settings) {
    return {{settings.chain_length, settings.nice_length, settings.max_match_length,
             settings.max_match_offset, settings.finds_short != 0},
            settings.lazy_steps,
            settings.skips != 0 ? kMissesToSkipLog2 : kMissesToSkipSlowlyLog2,
            settings.max_literal_length,
            settings.later_ends_later != 0};
}

// The state of a walk between two steps.
struct WalkState {
    u32 anchor;
    u32 last_offset;  // 0 if there is none

    __device__ bool operator==(const WalkState& other) const {
        return anchor == other.anchor && last_offset == other.last_offset;
    }
};

// A walk of one thread, one search after another. The caller runs each search.
template <typename Position, bool kEntropyCoded>
class PositionWalk {
  public:
    __device__ PositionWalk(const BestMatches<Position, kEntropyCoded>& matches,
                            const ParseBlock& block, const WalkRules& rules)
        : matches_(matches), num_linked_(block.num_linked), rules_(rules) {}

    // Goes to a state.
    __device__ void start(const WalkState& state) {
        state_ = state;
        position_ = state.anchor;
        num_misses_ = num_later_ = 0;
        match_ = {};
    }

    __device__ const WalkState& state() const { return state_; }
    __device__ bool is_between_steps() const {
        return match_.length == 0 && position_ == state_.anchor;
    }
    // Whether the walk has no match at hand, and looks for one at `position` or later.
    __device__ bool has_passed(u32 position) const {
        return match_.length == 0 && position_ >= position;
    }
    __device__ bool is_at_end() const { return has_passed(num_linked_); }

    // Begins the next search.
    __device__ PositionSearch search() const {
        const u32 least =
            rules_.later_ends_later ? match_.length - min(match_.length, num_later_) : 0;
        return matches_.begin(position_ + num_later_, match_.length == 0, least);
    }

    // Decides whether a found match is taken. Returns true if a step is complete: then `taken` is
    // the match of the step, and the walk is at the start of the next step.
    __device__ bool decide(const PositionSearch& search, Match& taken) {
        Match found = matches_.better_repeat(search, state_.last_offset);
        if (match_.length == 0) {
            found = found.length == 0 ? matches_.best_of_three(search) : found;
            if (found.length == 0) {
                position_ += 1 + (++num_misses_ >> rules_.misses_to_skip_log2);
                return false;
            }
        }
        if (match_.length == 0 ||
            found.gain > match_.gain + kLazyBias * static_cast<int>(num_later_)) {
            match_ = found;
            position_ = search.position;
            num_later_ = 0;
        }
        if (num_later_ < rules_.lazy_steps && match_.length < rules_.search.nice_length &&
            position_ + num_later_ + 1 < num_linked_) {
            ++num_later_;
            return false;
        }
        taken = match_;
        start({position_ + match_.length, kEntropyCoded ? match_.offset : 0});
        return true;
    }

  private:
    BestMatches<Position, kEntropyCoded> matches_;
    u32 num_linked_;
    WalkRules rules_;
    WalkState state_{};
    u32 position_ = 0;    // of the next search, or of match_
    u32 num_misses_ = 0;  // searches in a row without a match
    u32 num_later_ = 0;   // the next search is so many positions after match_
    Match match_{};       // taken unless a later one is better
};

}  // namespace gompfs

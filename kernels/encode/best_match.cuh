// The best match at a position of a block, found when a walk comes to it: the functions of
// native/codec/parse/best_match.h.
#pragma once

#include "encode/parse_batch.cuh"

namespace gompfs {

enum class SearchState {
    kFollowing,  // looks at the next candidate
    kHit,        // the candidate begins with the four bytes of the position
    kEnded,
    kDone,  // there is nothing to search
};

// A search for the best match of at least four bytes at a position.
//
// The first match is found on the chain of the position. A longer one contains the four bytes that
// end one byte after the longest match so far: the search goes on with their chain.
struct PositionSearch {
    SearchState state;
    u32 position;
    u32 first_word;   // the four bytes there
    u32 length;       // of the longest match so far; kHashedLength - 1 if there is none
    u32 link;         // the next candidate: its bytes from shift() on
    u32 num_steps;    // candidates that may still be looked at
    Match found;      // the best match so far
    u32 cost_before;  // the sum of the costs before the position
    u32 short_link;   // the last position with the same three bytes, or kNoLink

    __device__ u32 shift() const { return length - (kHashedLength - 1); }
};

// Words that are compared at a time.
constexpr u32 kWordsCompared = 4;

template <typename Position, bool kEntropyCoded>
class BestMatches {
  public:
    // `links`, `short_links` and `sums` are the arrays of the block.
    __device__ BestMatches(const ParseBlock& block, const Text& text, const Position* links,
                           const Position* short_links, const u16* sums, const SearchRules& rules)
        : text_(text),
          links_(links),
          short_links_(short_links),
          costs_(sums),
          size_(block.size),
          rules_(rules) {}

    // Begins a search. best_of_three may be called after it if `finds_three`. If `length` is four
    // or more, only longer matches are found.
    __device__ PositionSearch begin(u32 position, bool finds_three, u32 length) const {
        length = max(length, kHashedLength - 1);
        const bool is_possible = length < kHashedLength || length < limit_of(position);
        const u32 link =
            is_possible ? links_[position + length - (kHashedLength - 1)] : kNoLink<Position>;
        const u32 short_link = kEntropyCoded && rules_.finds_short && finds_three
                                   ? short_links_[position]
                                   : kNoLink<Position>;
        return {SearchState::kFollowing, position, text_.word(position),    length,    link,
                rules_.chain_length,     {},       costs_.before(position), short_link};
    }

    // Looks at a candidate.
    __device__ void follow(PositionSearch& search) const {
        const u32 source = search.link - search.shift();
        // If `source` is not a position before this one, the link is kNoLink or smaller than the
        // shift.
        if (source >= search.position || search.num_steps == 0) {
            search.state = SearchState::kEnded;
            return;
        }
        --search.num_steps;
        const u32 next = links_[search.link];
        if (text_.word(source) == search.first_word) {
            search.state = SearchState::kHit;
        } else {
            search.link = next;
        }
    }

    // Compares the candidate of a hit.
    __device__ void compare(PositionSearch& search) const {
        const u32 limit = limit_of(search.position);
        const u32 offset = search.position + search.shift() - search.link;
        const u32 length = text_.common_length<kWordsCompared>(
            search.position - offset, search.position, limit, kHashedLength);
        search.state = SearchState::kFollowing;
        if (length <= search.length) {
            search.link = links_[search.link];
            return;
        }
        if (offset > rules_.max_match_offset) {
            search.state = SearchState::kEnded;
            return;
        }
        // The first match is not counted.
        search.num_steps += search.length < kHashedLength ? 1 : 0;
        search.length = length;
        const int gain = costs_.gain_of(search.position, length, offset, search.cost_before);
        if (gain > search.found.gain) {
            search.found = {length, offset, gain};
        }
        if (length >= min(limit, rules_.nice_length)) {
            search.state = SearchState::kEnded;
            return;
        }
        search.link = links_[search.position + search.shift()];
    }

    // The match that a search found, or the one at the last offset.
    __device__ Match better_repeat(const PositionSearch& search, u32 last_offset) const {
        const Match again = repeat(search, last_offset);
        return again.gain > search.found.gain ? again : search.found;
    }

    // The nearest match of three bytes, if it gains enough.
    __device__ Match best_of_three(const PositionSearch& search) const {
        const u32 link = search.short_link;
        if (link == kNoLink<Position> || (text_.word(link) ^ search.first_word) << 8 != 0) {
            return {};
        }
        const u32 offset = search.position - link;
        const int gain = costs_.gain_of(search.position, kShortLength, offset, search.cost_before);
        return gain > kMinShortGain ? Match{kShortLength, offset, gain} : Match{};
    }

  private:
    __device__ u32 limit_of(u32 position) const {
        return min(size_ - position, rules_.max_match_length);
    }

    // The match at the last offset, if it has at least three bytes.
    __device__ Match repeat(const PositionSearch& search, u32 offset) const {
        const u32 position = search.position;
        if (!kEntropyCoded || offset == 0 || offset > position ||
            (search.first_word ^ text_.word(position - offset)) << 8 != 0) {
            return {};
        }
        const u32 length = text_.common_length<kWordsCompared>(position - offset, position,
                                                               limit_of(position), kShortLength);
        return costs_.repeat_of(position, length, offset, search.cost_before);
    }

    Text text_;
    const Position* links_;
    const Position* short_links_;
    Costs<kEntropyCoded> costs_;
    u32 size_;
    SearchRules rules_;
};

}  // namespace gompfs

// The best match at a position of a block, found when a walk comes to it: the functions of
// native/codec/best_match.h.
#pragma once

#include "encode/parse_batch.cuh"

namespace gompfs {

template <typename Position, bool kEntropyCoded>
class BestMatches {
  public:
    // `links` and the others are the arrays of the block.
    __device__ BestMatches(const ParseBlock& block, const Text& text, const Position* links,
                           const Position* short_links, const u16* sums, const SearchRules& rules)
        : text_(text),
          links_(links),
          short_links_(short_links),
          costs_(sums),
          size_(block.size),
          rules_(rules) {}

    // The best match of at least four bytes, or the one that repeats the last offset.
    __device__ Match best_long(u32 position, u32 last_offset) const {
        const Match match = best(position);
        const Match again = repeat(position, last_offset);
        return again.gain > match.gain ? again : match;
    }

    // The nearest match of three bytes, if it gains enough.
    __device__ Match best_of_three(u32 position) const {
        return kEntropyCoded && rules_.finds_short
                   ? best_short(text_, costs_, short_links_, position)
                   : Match{};
    }

  private:
    __device__ u32 limit_of(u32 position) const {
        return min(size_ - position, rules_.max_match_length);
    }

    // Follows a chain from `link` on, to a link where the bytes `shift` before it are `first_word`.
    // Returns that link; kNoLink if the chain ends, or after num_steps links.
    __device__ u32 follow(u32 link, u32 shift, u32 first_word, u32& num_steps) const {
        for (;;) {
            if (link == kNoLink<Position> || link < shift || num_steps == 0) {
                return kNoLink<Position>;
            }
            --num_steps;
            if (text_.word(link - shift) == first_word) {
                return link;
            }
            link = links_[link];
        }
    }

    // The first match is found on the chain of the position. A longer one contains the four bytes
    // that end one byte after the longest match so far: the search goes on with their chain.
    __device__ Match best(u32 position) const {
        const u32 limit = limit_of(position), first_word = text_.word(position);
        Match found{};
        u32 length = kHashedLength - 1, num_steps = rules_.chain_length;
        u32 link = links_[position];
        for (;;) {
            const u32 shift = length - (kHashedLength - 1);
            link = follow(link, shift, first_word, num_steps);
            if (link == kNoLink<Position>) {
                return found;
            }
            const u32 offset = position + shift - link;
            const u32 longer =
                text_.common_length(position - offset, position, limit, kHashedLength);
            if (longer <= length) {
                link = links_[link];
                continue;
            }
            if (offset > rules_.max_match_offset) {
                return found;
            }
            // The first match is not counted.
            num_steps += length < kHashedLength ? 1 : 0;
            length = longer;
            const int gain = costs_.gain_of(position, length, offset);
            if (gain > found.gain) {
                found = {length, offset, gain};
            }
            if (length >= min(limit, rules_.nice_length)) {
                return found;
            }
            link = links_[position + length - (kHashedLength - 1)];
        }
    }

    // The match at the last offset, if it has at least three bytes.
    __device__ Match repeat(u32 position, u32 offset) const {
        if (!kEntropyCoded || offset == 0 || offset > position ||
            (text_.word(position) ^ text_.word(position - offset)) << 8 != 0) {
            return {};
        }
        const u32 length =
            text_.common_length(position - offset, position, limit_of(position), kShortLength);
        return costs_.repeat_of(position, length, offset);
    }

    Text text_;
    const Position* links_;
    const Position* short_links_;
    Costs<kEntropyCoded> costs_;
    u32 size_;
    SearchRules rules_;
};

}  // namespace gompfs

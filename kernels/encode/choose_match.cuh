// What the parser takes at one position, as LazyParser::find in native/codec/lazy_parser.cpp: the
// legal part of the match that find_matches found, a match before the open group, one at the last
// offset, or one of three bytes.
#pragma once

#include "encode/walk_rules.cuh"

namespace gompfs {

// The arrays of a block.
template <typename Position>
struct WalkInput {
    const Position* links;
    const Position* short_links;
    const u16* sums;
    const u64* matches;
};

// What a warp knows about its block, in shared memory. Only the group and the last offset change.
template <typename Position>
struct WalkShared {
    ParseBlock block;
    WalkInput<Position> input;
    WalkRules rules;
    OpenGroup group;
    u32 last_offset;  // of the latest match; 0 if there is none yet
};

// What the parser takes at a position.
struct Choice {
    Match match;
    int long_gain;  // its gain, but 0 for a match of three bytes that was found by its hash
};

// Whether three bytes are the same as those at the last offset.
__device__ inline bool may_repeat(const Text& text, u32 position, u32 last_offset) {
    return last_offset != 0 && last_offset <= position &&
           (text.word(position) ^ text.word(position - last_offset)) << 8 == 0;
}

template <typename Position, bool kEntropyCoded>
class Chooser {
  public:
    __device__ explicit Chooser(const WalkShared<Position>& walk)
        : walk_(walk), text_(walk.block.content), costs_(walk.input.sums) {}

    __device__ Choice choose(u32 position, const Match& found) const {
        const bool is_short = found.length == kShortLength;
        const Match near = is_short ? Match{} : legal_or_before(position, found);
        const Match again = legal(position, repeat(position));
        const Match best = again.gain > near.gain ? again : near;
        if (best.length != 0) {
            return {best, best.gain};
        }
        // find_matches looked for a match of three bytes only where it found no longer one.
        Match short_match = is_short ? found : Match{};
        if (kEntropyCoded && found.length > kShortLength && walk_.rules.search.finds_short) {
            short_match = best_short(text_, costs_, walk_.input.short_links, position);
        }
        return {legal(position, short_match), 0};
    }

  private:
    __device__ u32 limit_of(u32 position) const {
        return min(walk_.block.size - position, walk_.rules.search.max_match_length);
    }

    __device__ Match legal(u32 position, const Match& match) const {
        const u32 length = walk_.group.legal_length(walk_.rules.source_rule, position, match);
        if (length == match.length) {
            return match;
        }
        return length < walk_.rules.min_match_length
                   ? Match{}
                   : costs_.match_of(position, length, match.offset);
    }

    __device__ Match legal_or_before(u32 position, const Match& match) const {
        const Match near = legal(position, match);
        if (near.length == match.length) {
            return near;
        }
        const Match before = before_group(position);
        return before.gain > near.gain ? before : near;
    }

    // The match at the last offset, if it has at least three bytes.
    __device__ Match repeat(u32 position) const {
        const u32 offset = walk_.last_offset;
        if (!kEntropyCoded || !may_repeat(text_, position, offset)) {
            return {};
        }
        const u32 length =
            text_.common_length(position - offset, position, limit_of(position), kShortLength);
        return costs_.repeat_of(position, length, offset, costs_.before(position));
    }

    // The nearest link whose four bytes end at or before `end`.
    __device__ u32 link_before(u32 position, u32 end) const {
        u32 link = walk_.input.links[position];
        for (int passed = 0; link != kNoLink<Position> && link + kHashedLength > end;
             link = walk_.input.links[link]) {
            if (++passed > kMaxPassed) {
                return kNoLink<Position>;
            }
        }
        return link;
    }

    // The best match of at least four bytes whose source lies before the group, or below the
    // high-water mark: BestMatches::best_before in native/codec/best_match.h.
    __device__ Match before_group(u32 position) const {
        const u32 end = walk_.group.safe_end(walk_.rules.source_rule, position);
        const u32 limit = limit_of(position), first_word = text_.word(position);
        Match best{};
        u32 length = kHashedLength - 1, link = link_before(position, end);
        for (int num_steps = min(static_cast<int>(2 * walk_.rules.search.chain_length), kMaxBefore);
             num_steps != 0 && link != kNoLink<Position>;
             --num_steps, link = walk_.input.links[link]) {
            if (position - link > walk_.rules.search.max_match_offset) {
                break;
            }
            if (link + length >= end || text_.word(link) != first_word) {
                continue;
            }
            const u32 longer =
                text_.common_length(link, position, min(limit, end - link), kHashedLength);
            if (longer <= length) {
                continue;
            }
            length = longer;
            const int gain = costs_.gain_of(position, length, position - link);
            if (gain > best.gain) {
                best = {length, position - link, gain};
            }
            if (length == limit) {
                break;
            }
        }
        return best;
    }

    const WalkShared<Position>& walk_;
    Text text_;
    Costs<kEntropyCoded> costs_;
};

// Not inlined: the walk calls it from several places, and rarely.
template <typename Position, bool kEntropyCoded>
GOMPFS_NOINLINE __device__ Choice choose_match(const WalkShared<Position>& walk, u32 position,
                                               Match found) {
    return Chooser<Position, kEntropyCoded>(walk).choose(position, found);
}

}  // namespace gompfs

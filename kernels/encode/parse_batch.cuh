// The blocks that are parsed by one launch, and the arrays that the kernels pass to each other.
//
// A block is parsed in steps, a kernel each: sums of the costs of literals (sum_literal_costs.cu),
// links between positions (link_positions.cu), and a walk that makes sequences, which searches
// matches where it comes to (walk_segments.cu). To parse backwards, the best match at each position
// is found before (find_matches.cu). The rules are those of native/codec/parse/lazy_parser.cpp,
// native/codec/parse/bit_backward_parser.cpp and native/codec/parse/best_match.h; constants and
// costs are in shared/match_costs.h.
#pragma once

#include "shared/match_costs.h"
#include "shared/warp.cuh"

namespace gompfs {

// Arrays of a block have a multiple of this many items, so that each is aligned.
constexpr u32 kItemsAligned = 8;

// No position: positions without four bytes are not linked. 16 and 32 bits wide.
template <typename Position>
constexpr Position kNoLink = static_cast<Position>(~Position{0});

// A match in 64 bits: 20 bits of offset, 12 of length, and the gain. 0 for no match.
struct Match {
    u32 length;
    u32 offset;
    int gain;
};

constexpr int kMatchOffsetBits = 20;
constexpr u32 kMatchOffsetMask = (1u << kMatchOffsetBits) - 1;

__device__ inline u64 pack_match(const Match& match) {
    return match.offset | match.length << kMatchOffsetBits | static_cast<u64>(match.gain) << 32;
}

__device__ inline Match unpack_match(u64 packed) {
    const u32 low = static_cast<u32>(packed);
    return {low >> kMatchOffsetBits, low & kMatchOffsetMask, static_cast<int>(packed >> 32)};
}

// Parameters of the level and the codec: the fields of ParserSettings
// (native/bindings/codec_sequences.cpp) that a kernel needs.
struct SearchRules {
    u32 chain_length;
    u32 nice_length;
    u32 max_match_length;
    u32 max_match_offset;
    bool finds_short;
};

// One block of a batch.
struct ParseBlock {
    const u8* content;
    u32 size;
    u32 num_linked;  // positions that are followed by enough bytes for a hash
};

__device__ inline ParseBlock block_of(u32 index, const u8* content, u64 content_size,
                                      u32 block_size) {
    const u64 start = static_cast<u64>(index) * block_size;
    const u32 size = static_cast<u32>(min(content_size - start, static_cast<u64>(block_size)));
    return {content + start, size, size - min(size, kHashedLength - 1)};
}

// The number of items in an array with one item for each position of a block, and one more.
__device__ inline u64 items_per_block(u32 block_size) {
    return block_size / kItemsAligned * kItemsAligned + kItemsAligned;
}

// Bytes after a block in shared memory that may be read.
constexpr u32 kTextPadding = 32;

// The content of a block, aligned to 4 bytes; 7 bytes after it must be readable, and for
// common_length 4 * kWords + 3.
class Text {
  public:
    __device__ explicit Text(const u8* content) : words_(reinterpret_cast<const u32*>(content)) {}

    // The four bytes at a position.
    __device__ u32 word(u32 position) const {
        const u32* const words = words_ + position / 4;
        return __funnelshift_r(words[0], words[1], position * 8);  // modulo 32
    }

    // The number of equal bytes at two positions, at most `limit`, of which `length` are known.
    // Compares kWords words at a time: to load them takes no longer than to load one.
    template <u32 kWords = 1>
    __device__ u32 common_length(u32 left, u32 right, u32 limit, u32 length) const {
        const u32* left_words = words_ + (left + length) / 4;
        const u32* right_words = words_ + (right + length) / 4;
        const u32 left_shift = (left + length) * 8, right_shift = (right + length) * 8;
        u32 left_word = *left_words, right_word = *right_words;
        for (; length < limit; length += 4 * kWords) {
            u32 differences[kWords], any = 0;
#pragma unroll
            for (u32 word = 0; word < kWords; ++word) {
                const u32 next_left = *++left_words, next_right = *++right_words;
                differences[word] = __funnelshift_r(left_word, next_left, left_shift) ^
                                    __funnelshift_r(right_word, next_right, right_shift);
                any |= differences[word];
                left_word = next_left;
                right_word = next_right;
            }
            if (any != 0) {
                return min(length + num_equal(differences), limit);
            }
        }
        return limit;
    }

  private:
    // The number of equal bytes before the first difference. There is one.
    template <u32 kWords>
    __device__ static u32 num_equal(const u32 (&differences)[kWords]) {
        u32 first = kWords - 1, difference = differences[first];
#pragma unroll
        for (u32 word = kWords - 1; word-- > 0;) {
            first = differences[word] != 0 ? word : first;
            difference = differences[word] != 0 ? differences[word] : difference;
        }
        return 4 * first + (__ffs(static_cast<int>(difference)) - 1) / 8;
    }

    const u32* words_;
};

// Costs of the literals and matches of a block. `sums` is not used without entropy coding.
template <bool kEntropyCoded>
class Costs {
  public:
    __device__ explicit Costs(const u16* sums) : sums_(sums) {}

    // The sum of the costs before a position: for the functions that get it as `before`, so that it
    // is loaded once for several matches there.
    __device__ u32 before(u32 position) const { return kEntropyCoded ? sums_[position] : 0; }

    __device__ int of_literals(u32 position, u32 length, u32 before) const {
        if (kEntropyCoded) {
            return static_cast<u16>(sums_[position + length] - before);
        }
        return static_cast<int>(length) * kPlainLiteralCost;
    }

    __device__ int gain_of(u32 position, u32 length, u32 offset, u32 before) const {
        return of_literals(position, length, before) - match_length_cost<kEntropyCoded>(length) -
               match_offset_cost<kEntropyCoded>(offset);
    }
    __device__ int gain_of(u32 position, u32 length, u32 offset) const {
        return gain_of(position, length, offset, before(position));
    }

    // The match with this length and offset; none if it gains nothing.
    __device__ Match match_of(u32 position, u32 length, u32 offset) const {
        const int gain = gain_of(position, length, offset);
        return gain > 0 ? Match{length, offset, gain} : Match{};
    }

    // The same at the offset of the match before.
    __device__ Match repeat_of(u32 position, u32 length, u32 offset, u32 before) const {
        return {length, offset,
                of_literals(position, length, before) - match_length_cost<kEntropyCoded>(length) -
                    kRepeatCost};
    }

  private:
    const u16* sums_;
};

// The match of three bytes at the nearest position with the same hash of them, if it gains enough.
template <typename Position, bool kEntropyCoded>
__device__ inline Match best_short(const Text& text, const Costs<kEntropyCoded>& costs,
                                   const Position* short_links, u32 position) {
    const u32 link = short_links[position];
    if (link == kNoLink<Position> || (text.word(link) ^ text.word(position)) << 8 != 0) {
        return {};
    }
    const Match match = costs.match_of(position, kShortLength, position - link);
    return match.gain > kMinShortGain ? match : Match{};
}

// Copies whole vectors from device to shared memory: those that `size` bytes are in.
__device__ inline void copy_to_shared(const void* from, u32 size, uint4* to) {
    for (u32 vector = threadIdx.x; vector < (size + 15) / 16; vector += blockDim.x) {
        to[vector] = static_cast<const uint4*>(from)[vector];
    }
}

}  // namespace gompfs

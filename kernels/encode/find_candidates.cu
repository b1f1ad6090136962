// Finds the candidates of all positions of a block, for the backward parser: the nearest match, the
// best match, which find_matches.cu has found, and the offset of the nearest match of three bytes.
//
// Launch: num_parts CTAs of any number of threads per block.
// Mapping: the threads of the CTAs of a block take its positions in turn.
// Reads: the content of block i at content + i * block_size; links, short_links and matches at i *
//   items_per_block(block_size).
// Writes: candidates[i * items_per_block(block_size) + p] for each position p of block i: four
//   words, see shared/ways.h.
// Shared memory: none.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 16 bytes after the content are readable.
// Fails: never.
// Oracle: native/codec/parse/bit_candidates.h (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/backward_parser.py.
#include "encode/parse_batch.cuh"
#include "shared/ways.h"

namespace gompfs {

// The match that repeats the offset of another one, after a few literals.
__device__ inline WayMatch with_repeat(const Text& text, u32 size, u32 position, u32 length,
                                       u32 offset) {
    const u32 end = position + length;
    for (u32 literals = 1; literals <= kMaxRepeatLiterals && length != 0; ++literals) {
        const u32 begin = end + literals;
        if (begin + kBitMinMatchLength > size) {
            break;
        }
        if ((text.word(begin) ^ text.word(begin - offset)) << 8 == 0) {
            const u32 limit = min(size - begin, static_cast<u32>(kBitMaxMatchLength));
            return {offset, length, literals,
                    text.common_length(begin - offset, begin, limit, kBitMinMatchLength)};
        }
    }
    return {offset, length, 0, 0};
}

// The nearest match of at least four bytes, without its gain.
template <typename Position>
__device__ inline Match find_nearest(const Text& text, u32 size, const Position* links,
                                     u32 position) {
    const u32 word = text.word(position);
    u32 link = links[position];
    for (int step = 0; step < kMaxNearest && link != kNoLink<Position>; ++step) {
        if (text.word(link) == word) {
            const u32 limit = min(size - position, static_cast<u32>(kBitMaxMatchLength));
            return {text.common_length(link, position, limit, kHashedLength), position - link, 0};
        }
        link = links[link];
    }
    return {};
}

// The offset of the nearest match of three bytes that has no fourth; 0 if there is none.
template <typename Position>
__device__ inline u32 find_nearest_short(const Text& text, const Position* short_links,
                                         u32 position) {
    const u32 link = short_links[position];
    const u32 difference = link == kNoLink<Position> ? 0 : text.word(link) ^ text.word(position);
    return difference != 0 && difference << 8 == 0 ? position - link : 0;
}

template <typename Position>
__device__ inline uint4 find_candidates(const ParseBlock& block, const Text& text,
                                        const Position* links, const Position* short_links,
                                        const u64* matches, u32 position) {
    if (position >= block.num_linked) {
        return {0, 0, 0, 0};
    }
    Match best = unpack_match(matches[position]);
    if (best.length == kShortLength) {
        best = {};
    }
    Match nearest = find_nearest(text, block.size, links, position);
    if (nearest.offset == best.offset) {
        nearest = {};
    }
    const WayMatch first = with_repeat(text, block.size, position, nearest.length, nearest.offset);
    const WayMatch second = with_repeat(text, block.size, position, best.length, best.offset);
    return {pack_way_match(first), pack_way_match(second),
            find_nearest_short(text, short_links, position),
            pack_repeat_lengths(first.repeat_length, second.repeat_length)};
}

template <typename Position>
__device__ inline void find_candidates_of_part(const u8* content, u64 content_size, u32 block_size,
                                               const Position* links, const Position* short_links,
                                               const u64* matches, u32 num_parts,
                                               uint4* candidates) {
    const u32 index = blockIdx.x / num_parts;
    const ParseBlock block = block_of(index, content, content_size, block_size);
    const u64 first = index * items_per_block(block_size);
    const Text text(block.content);
    for (u32 position = blockIdx.x % num_parts * blockDim.x + threadIdx.x; position < block.size;
         position += num_parts * blockDim.x) {
        candidates[first + position] = find_candidates(
            block, text, links + first, short_links + first, matches + first, position);
    }
}

}  // namespace gompfs

extern "C" __global__ void find_candidates_narrow(
    const unsigned char* content, unsigned long long content_size, unsigned int block_size,
    const unsigned short* links, const unsigned short* short_links,
    const unsigned long long* matches, unsigned int num_parts, uint4* candidates) {
    gompfs::find_candidates_of_part(content, content_size, block_size, links, short_links, matches,
                                    num_parts, candidates);
}

extern "C" __global__ void find_candidates_wide(const unsigned char* content,
                                                unsigned long long content_size,
                                                unsigned int block_size, const unsigned int* links,
                                                const unsigned int* short_links,
                                                const unsigned long long* matches,
                                                unsigned int num_parts, uint4* candidates) {
    gompfs::find_candidates_of_part(content, content_size, block_size, links, short_links, matches,
                                    num_parts, candidates);
}

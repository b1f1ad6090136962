// Blocks of the stream in device memory, and a position in them that moves over the ends of blocks.
#pragma once

#include "shared/grid.cuh"

namespace gompfs {

// Block i has sizes[i] bytes at text + offsets[i], which is a multiple of 16. continues[i] is 1 if
// block i follows the block before it in the stream, and else 0; continues[0] is about a block that
// is not in the batch. After the last block, `continues` has a 0.
struct StreamText {
    const u8* text;
    const u64* offsets;
    const u32* sizes;
    const u8* continues;

    __device__ const u8* block(u64 index) const { return text + offsets[index]; }
};

struct Cursor {
    const StreamText& stream;
    u64 block;
    u32 at;  // in the block; its size after the last byte

    // Moves from the end of a block to the next byte. Returns false if there is none here.
    __device__ bool settle() {
        while (at == stream.sizes[block]) {
            if (!stream.continues[block + 1]) {
                return false;
            }
            ++block;
            at = 0;
        }
        return true;
    }

    // Moves to the byte before. Returns false if there is none here.
    __device__ bool step_back() {
        while (at == 0) {
            if (block == 0 || !stream.continues[block]) {
                return false;
            }
            at = stream.sizes[--block];
        }
        --at;
        return true;
    }

    // Whether this is the first byte of the first block, and the stream has a byte before it that
    // is not in the batch.
    __device__ bool is_cut() const { return block == 0 && at == 0 && stream.continues[0] != 0; }

    __device__ u8 byte() const { return stream.block(block)[at]; }
};

constexpr u32 kVectorSize = 16;

// 16 bytes of text.
struct Vector {
    u32 words[4];

    __device__ explicit Vector(const u8* aligned) {
        const uint4 loaded = *reinterpret_cast<const uint4*>(aligned);
        words[0] = loaded.x;
        words[1] = loaded.y;
        words[2] = loaded.z;
        words[3] = loaded.w;
    }
    __device__ u8 byte(u32 index) const {
        return static_cast<u8>(words[index / 4] >> index % 4 * 8);
    }
};

// The highest bit of each byte of the word that equals the byte repeated in `pattern`.
__device__ inline u32 equal_bytes(u32 word, u32 pattern) {
    constexpr u32 kLowBits = 0x7f7f7f7f;
    const u32 differences = word ^ pattern;
    return ~(((differences & kLowBits) + kLowBits) | differences | kLowBits);
}

constexpr u32 kLineFeeds = 0x0a0a0a0a;

}  // namespace gompfs

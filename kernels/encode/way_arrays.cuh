// Arrays in device memory with the costs, repeats and choices of each position of a block, which
// the kernels of the backward parser use.
#pragma once

#include "encode/parse_batch.cuh"
#include "shared/ways.h"

namespace gompfs {

// The costs and repeats of the positions of a block are stored by their number in their segment,
// then by segment: the lanes of a warp, which each search a segment, store them together.
struct WayIndex {
    u32 segment_size;

    __device__ u32 operator()(u32 position) const {
        return position % segment_size * kNumSegments + position / segment_size;
    }
};

// The number of costs, and of repeats, for each block of a batch.
__device__ inline u64 ways_per_block(u32 block_size) {
    return static_cast<u64>(segment_size(block_size)) * kNumSegments;
}

// The arrays of a batch, or of a block.
struct WayArrays {
    int* costs;    // of the cheapest way from each position
    u64* repeats;  // see pack_repeat

    __device__ WayArrays of_block(u32 index, u32 block_size) const {
        const u64 first = index * ways_per_block(block_size);
        return {costs + first, repeats + first};
    }
};

}  // namespace gompfs

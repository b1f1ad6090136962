// The batch of blocks that one launch decodes, and how its warps share the blocks. Each warp takes
// the next block from a counter in device memory until no block is left. Blocks do not depend on
// each other, so a warp never waits for another warp, and a block that takes long to decode delays
// only its own warp.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

// Limits that the kernels are compiled for. They allow 72 registers per thread on an H200; kernels
// compiled for 64 or 80 registers are 10 to 30% slower there.
constexpr int kThreadsPerCta = 128;
constexpr int kCtasPerProcessor = 7;

// The values equal those of gompfs.codec.BlockStatus.
constexpr u8 kStatusOk = 0;
constexpr u8 kStatusBadPayload = 3;

// The arguments of a decoding kernel. Payloads begin at multiples of 16 in `compressed`, which can
// be read for 256 bytes past the last payload. Outputs begin at multiples of 16 in `output`.
struct GpuBatch {
    const u8* compressed;
    const u64* payload_offsets;
    const u32* payload_sizes;
    u8* output;
    const u64* output_offsets;
    const u32* output_sizes;
    u8* statuses;
    u32* next_block;  // number of blocks that warps have taken; 0 before the launch
    u32 num_blocks;
};

struct BlockTask {
    u32 index;  // in the batch
    const u8* payload;
    u32 payload_size;
    u8* output;
    u32 output_size;
};

__device__ inline BlockTask task_at(const GpuBatch& batch, u32 index) {
    return {index, batch.compressed + batch.payload_offsets[index], batch.payload_sizes[index],
            batch.output + batch.output_offsets[index], batch.output_sizes[index]};
}

// Lets every warp take blocks until none is left, and stores a status for each block. All lanes of
// a warp call decode(task), which returns whether the payload is valid.
template <class Decode>
__device__ inline void for_each_block(const GpuBatch& batch, Decode&& decode) {
    const int lane = lane_id();
    for (;;) {
        u32 index = lane == 0 ? atomicAdd(batch.next_block, 1u) : 0;
        index = __shfl_sync(kAllLanes, index, 0);
        if (index >= batch.num_blocks) {
            return;
        }
        const bool valid = decode(task_at(batch, index));
        if (lane == 0) {
            batch.statuses[index] = valid ? kStatusOk : kStatusBadPayload;
        }
    }
}

}  // namespace gompfs

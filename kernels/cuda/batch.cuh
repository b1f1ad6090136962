// A batch of blocks and the warps that share it.
#pragma once

#include "warp.cuh"

namespace gompfs {

// What kernels are compiled for. It leaves them 72 registers on an H200: with 64 or 80, they are 10
// to 30% slower there.
constexpr int kThreadsPerCta = 128;
constexpr int kCtasPerProcessor = 7;

// The numbers are those of gompfs.codec.BlockStatus.
constexpr u8 kStatusOk = 0;
constexpr u8 kStatusBadPayload = 3;

// What a kernel gets of each block. Payloads begin at multiples of 16 in compressed, which has 64
// bytes more than they need; outputs begin at multiples of 16 in output.
struct Batch {
    const u8* compressed;
    const u64* payload_offsets;
    const u32* payload_sizes;
    u8* output;
    const u64* output_offsets;
    const u32* output_sizes;
    u8* statuses;
    u32* next_block;  // 0 at the start: how many blocks warps have taken
    u32 num_blocks;
};

struct BlockTask {
    const u8* payload;
    u32 payload_size;
    u8* output;
    u32 output_size;
};

// Lets warps take blocks until none is left. decode(task) is called by all lanes of a warp, and
// tells whether the payload was valid.
template <class Decode>
__device__ inline void for_each_block(const Batch& batch, Decode&& decode) {
    const int lane = lane_id();
    for (;;) {
        u32 index = lane == 0 ? atomicAdd(batch.next_block, 1u) : 0;
        index = __shfl_sync(kAllLanes, index, 0);
        if (index >= batch.num_blocks) {
            return;
        }
        const BlockTask task{batch.compressed + batch.payload_offsets[index],
                             batch.payload_sizes[index], batch.output + batch.output_offsets[index],
                             batch.output_sizes[index]};
        const bool valid = decode(task);
        if (lane == 0) {
            batch.statuses[index] = valid ? kStatusOk : kStatusBadPayload;
        }
    }
}

}  // namespace gompfs

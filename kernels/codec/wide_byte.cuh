// Decodes one block of gompresso-byte with a CTA (wide_block.cuh). Each thread reads a few
// sequences; a prefix sum over the numbers of their length extensions tells where each finds its
// own. The literals are read where they are, in the payload. The checks are those of
// byte_block.cuh.
#pragma once

#include "codec/byte_block.cuh"
#include "codec/wide_block.cuh"

namespace gompfs {

struct ByteWideShared {
    WideShared block;
    u32 sums[kWideSums];  // of the numbers of extensions of each warp's sequences
    u32 extension;        // index of the next extension
};

__device__ inline u32 count_extensions(const TokenAndOffset& loaded) {
    return (has_long_literals(loaded.token) ? 1 : 0) + (has_long_match(loaded.token) ? 1 : 0);
}

// Reads the next sequences of the block, in the order of lay_out.
__device__ inline void read_sequences(const ByteStreams& in, u32 first, ByteWideShared& shared,
                                      LaneSequence (&sequences)[kWideSequences]) {
    const u32 lane = lane_id(), warp = threadIdx.x / kWarpSize;
    const u32 num_warps = blockDim.x / kWarpSize;
    TokenAndOffset loaded[kWideSequences];
    u32 through[kWideSequences];  // the numbers of extensions
#pragma unroll
    for (u32 index = 0; index < kWideSequences; ++index) {
        loaded[index] = load_sequence(in, first + index * blockDim.x + threadIdx.x);
        through[index] = inclusive_sum(count_extensions(loaded[index]), lane);
        if (lane == kWarpSize - 1) {
            shared.sums[index * num_warps + warp] = through[index];
        }
    }
    __syncthreads();
    if (warp == 0) {
        sum_before(shared.sums, kWideSequences * num_warps);
    }
    __syncthreads();
#pragma unroll
    for (u32 index = 0; index < kWideSequences; ++index) {
        const u32 end = shared.extension + shared.sums[index * num_warps + warp] + through[index];
        sequences[index] =
            end <= in.extensions_end
                ? make_sequence(in, loaded[index], end - count_extensions(loaded[index]))
                : bad_sequence();
        through[index] = end;
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        shared.extension = through[kWideSequences - 1];
    }
}

// Decodes one block to `target`. Returns whether the payload is valid, in all threads.
__device__ inline bool decode_byte_wide_block(const BlockTask& task, u8* target,
                                              ByteWideShared& shared) {
    ByteStreams in;
    if (!split_streams(task, in) || in.num_literals > task.output_size) {
        return false;
    }
    if (threadIdx.x == 0) {
        shared.extension = in.extension;
    }
    begin_block(shared.block);
    for (u32 first = 0; first < in.num_sequences; first += kWideSequences * blockDim.x) {
        LaneSequence sequences[kWideSequences];
        read_sequences(in, first, shared, sequences);
        if (!lay_out(shared.block, sequences, task.output_size, in.num_literals)) {
            return false;
        }
    }
    if (shared.block.position != task.output_size || shared.block.num_literals != in.num_literals ||
        shared.extension != in.extensions_end) {
        return false;
    }
    write_block(shared.block, task.output_size, in.payload + in.extensions_end, target);
    return true;
}

// Shared memory of a CTA, in bytes.
constexpr unsigned kByteWideBytes = sizeof(ByteWideShared);

}  // namespace gompfs

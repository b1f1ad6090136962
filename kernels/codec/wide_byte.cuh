// Decodes one block of gompresso-byte with a CTA (wide_block.cuh). Thread i reads sequence i of
// each row of as many sequences as the CTA has threads; a prefix sum over the numbers of their
// length extensions tells where each finds its own. The literals are read where they are, in the
// payload. The checks are those of byte_block.cuh.
#pragma once

#include "codec/byte_block.cuh"
#include "codec/wide_block.cuh"

namespace gompfs {

struct ByteWideShared {
    WideShared block;
    u32 sums[kWarpSize];  // scratch memory of a prefix sum
    u32 extension;        // index of the next extension
};

// Decodes one block. Returns whether the payload is valid, in all threads.
__device__ inline bool decode_byte_wide_block(const BlockTask& task, ByteWideShared& shared) {
    ByteStreams in;
    if (!split_streams(task, in) || in.num_literals > task.output_size) {
        return false;
    }
    if (threadIdx.x == 0) {
        shared.extension = in.extension;
    }
    begin_block(shared.block);
    for (u32 first = 0; first < in.num_sequences; first += blockDim.x) {
        const TokenAndOffset loaded = load_sequence(in, first + threadIdx.x);
        const u32 num_extensions =
            (has_long_literals(loaded.token) ? 1 : 0) + (has_long_match(loaded.token) ? 1 : 0);
        const u32 extension = shared.extension + scan_before(num_extensions, shared.sums, Sum{});
        const bool is_inside = extension + num_extensions <= in.extensions_end;
        const LaneSequence sequence =
            is_inside ? make_sequence(in, loaded, extension) : bad_sequence();
        if (!lay_out(shared.block, sequence, task.output_size, in.num_literals)) {
            return false;
        }
        if (threadIdx.x == blockDim.x - 1) {
            shared.extension = extension + num_extensions;
        }
        __syncthreads();
    }
    if (shared.block.position != task.output_size || shared.block.num_literals != in.num_literals ||
        shared.extension != in.extensions_end) {
        return false;
    }
    write_block(shared.block, task, in.payload + in.extensions_end);
    return true;
}

// Shared memory of a CTA, in bytes.
constexpr unsigned kByteWideBytes = sizeof(ByteWideShared);

}  // namespace gompfs

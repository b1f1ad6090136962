// Decodes blocks of gompresso-byte of at most 64 KiB, one CTA per block (wide_byte.cuh). For small
// batches: a block takes a fraction of the time that decode_byte takes, but many blocks take
// longer.
//
// Launch: any number of CTAs of 4 to 32 warps; the engine launches CTAs of 32 warps, one per block.
// Mapping: a CTA takes blocks from next_block until none is left. All its threads share the
//   sequences, and then the bytes, of the block.
// Reads: as decode_byte.
// Writes: as decode_byte, but output i is at target + output_offsets[i], which may be memory of the
//   host. Memory at `output` is not used.
// Shared memory: kByteWideBytes, which is more than devices before Hopper have.
// Requires: as decode_byte; no output is larger than kWideBlockSize.
// Fails: as decode_byte, and for a larger output.
// Oracle: as decode_byte.
// Caller: SmallBatches in native/gpu/small_batches.cpp, for gompfs/gpu/small_batches.py.
#include "codec/wide_byte.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kWideThreads)
    decode_byte_wide(const unsigned char* compressed, const unsigned long long* payload_offsets,
                     const unsigned int* payload_sizes, unsigned char* output,
                     const unsigned long long* output_offsets, const unsigned int* output_sizes,
                     unsigned char* statuses, unsigned int* next_block, unsigned int num_blocks,
                     unsigned char* target) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    ByteWideShared& shared = *reinterpret_cast<ByteWideShared*>(shared_memory);
    const GpuBatch batch{compressed,   payload_offsets, payload_sizes, output,    output_offsets,
                         output_sizes, statuses,        next_block,    num_blocks};
    for_each_block_of_cta(batch, shared.block.block, [&](const BlockTask& task) {
        return decode_byte_wide_block(task, target + (task.output - batch.output), shared);
    });
}

// Decodes blocks of gompresso-bit, one warp per block (bit_block.cuh).
//
// Launch: any number of CTAs of 1 to 4 warps; the engine launches no more CTAs of 4 warps than the
//   device holds at once.
// Mapping: a warp takes blocks from next_block until none is left. In a block, lane i decodes
//   sequence sub-block i and literal sub-block i.
// Reads: payload i of payload_sizes[i] bytes at compressed + payload_offsets[i].
// Writes: output_sizes[i] bytes at output + output_offsets[i], and statuses[i]; advances
//   next_block.
// Shared memory: kBitBytesPerCta for the CTA, then kBitBytesPerWarp for each of its warps.
// Requires: *next_block is 0; alignment and readable padding as batch.cuh says. Payloads need not
//   be valid.
// Fails: statuses[i] becomes kStatusBadPayload for a payload that is not valid; the content of its
//   output is then undefined. A kernel never traps and never writes outside the outputs.
// Oracle: tests/oracle/bit.py and native/codec/bit_decoder.cpp
//   (tests/kernels/test_decode_kernels_on_host.py, test_gpu_engine.py).
// Caller: Device.launch in gompfs/gpu/decode/device.py.
#include "codec/bit_block.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta, gompfs::kCtasPerProcessor)
    decode_bit(const unsigned char* compressed, const unsigned long long* payload_offsets,
               const unsigned int* payload_sizes, unsigned char* output,
               const unsigned long long* output_offsets, const unsigned int* output_sizes,
               unsigned char* statuses, unsigned int* next_block, unsigned int num_blocks) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TokenClass* const classes = reinterpret_cast<TokenClass*>(shared_memory);
    BitShared& shared =
        reinterpret_cast<BitShared*>(classes + kNumTokenSymbols)[threadIdx.x / kWarpSize];
    fill_token_classes(classes);
    const GpuBatch batch{compressed,   payload_offsets, payload_sizes, output,    output_offsets,
                         output_sizes, statuses,        next_block,    num_blocks};
    for_each_block(batch, [&](const BlockTask& task) {
        PieceRows rows{shared.row};
        return decode_bit_block(task, shared, classes, rows);
    });
}

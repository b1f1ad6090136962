// Decodes blocks of gompresso-byte, one warp per block (byte_block.cuh).
//
// Launch: any number of CTAs of 1 to 4 warps; the engine launches no more CTAs of 4 warps than the
//   device holds at once.
// Mapping: a warp takes blocks from next_block until none is left. In a block, lane i decodes
//   sequence i of each row of 32 sequences.
// Reads: payload i of payload_sizes[i] bytes at compressed + payload_offsets[i].
// Writes: output_sizes[i] bytes at output + output_offsets[i], and statuses[i]; advances
//   next_block.
// Shared memory: kByteBytesPerWarp for each warp.
// Requires: *next_block is 0; alignment and readable padding as batch.cuh says. Payloads need not
//   be valid.
// Fails: statuses[i] becomes kStatusBadPayload for a payload that is not valid; the content of its
//   output is then undefined. A kernel never traps and never writes outside the outputs.
// Oracle: tests/oracle/byte.py and native/codec/byte_codec.cpp
//   (tests/kernels/test_decode_kernels_on_host.py, test_gpu_engine.py).
// Caller: Device.launch in gompfs/gpu/decode/device.py.
#include "codec/byte_block.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta, gompfs::kCtasPerProcessor)
    decode_byte(const unsigned char* compressed, const unsigned long long* payload_offsets,
                const unsigned int* payload_sizes, unsigned char* output,
                const unsigned long long* output_offsets, const unsigned int* output_sizes,
                unsigned char* statuses, unsigned int* next_block, unsigned int num_blocks) {
    extern __shared__ uint4 shared_memory[];
    gompfs::RowShared& shared =
        reinterpret_cast<gompfs::RowShared*>(shared_memory)[threadIdx.x / gompfs::kWarpSize];
    const gompfs::GpuBatch batch{compressed, payload_offsets, payload_sizes,
                                 output,     output_offsets,  output_sizes,
                                 statuses,   next_block,      num_blocks};
    gompfs::for_each_block(batch, [&](const gompfs::BlockTask& task) {
        gompfs::PieceRows rows{shared};
        return gompfs::decode_byte_block(task, rows);
    });
}

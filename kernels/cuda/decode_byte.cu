// Decodes gompresso-byte, a warp per block (byte_block.cuh).
//
// Launch: any number of CTAs of up to 4 warps; warps take blocks until none is left. Shared memory:
// kByteBytesPerWarp for each warp.
#include "byte_block.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta, gompfs::kCtasPerProcessor)
    decode_byte(const unsigned char* compressed, const unsigned long long* payload_offsets,
                const unsigned int* payload_sizes, unsigned char* output,
                const unsigned long long* output_offsets, const unsigned int* output_sizes,
                unsigned char* statuses, unsigned int* next_block, unsigned int num_blocks) {
    extern __shared__ uint4 shared_memory[];
    gompfs::RowShared& shared =
        reinterpret_cast<gompfs::RowShared*>(shared_memory)[threadIdx.x / gompfs::kWarpSize];
    const gompfs::Batch batch{compressed, payload_offsets, payload_sizes,
                              output,     output_offsets,  output_sizes,
                              statuses,   next_block,      num_blocks};
    gompfs::for_each_block(batch, [&](const gompfs::BlockTask& task) {
        gompfs::PieceRows rows{shared};
        return gompfs::decode_byte_block(task, rows);
    });
}

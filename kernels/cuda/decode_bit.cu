// Decodes gompresso-bit, a warp per block (bit_block.cuh).
//
// Launch: any number of CTAs of up to 4 warps; warps take blocks until none is left. Shared memory:
// kBitBytesPerCta, and kBitBytesPerWarp for each warp.
#include "bit_block.cuh"

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
    const Batch batch{compressed,   payload_offsets, payload_sizes, output,    output_offsets,
                      output_sizes, statuses,        next_block,    num_blocks};
    for_each_block(batch, [&](const BlockTask& task) {
        PieceRows rows{shared.row};
        return decode_bit_block(task, shared, classes, rows);
    });
}

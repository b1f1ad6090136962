// Decodes gompresso-bit by the strategies of the paper (strategies.cuh), to compare them.
//
// Launch and shared memory: as decode_bit. num_rounds gets the rounds of all rows added up. The
// caller sees to it that dependency elimination is asked for only where all payloads promise it.
#include "bit_block.cuh"
#include "strategies.cuh"

namespace gompfs {

template <MatchStrategy kStrategy>
__device__ inline void decode_by(const Batch& batch, uint4* memory,
                                 unsigned long long* num_rounds) {
    TokenClass* const classes = reinterpret_cast<TokenClass*>(memory);
    BitShared& shared =
        reinterpret_cast<BitShared*>(classes + kNumTokenSymbols)[threadIdx.x / kWarpSize];
    fill_token_classes(classes);
    u32 rounds = 0;
    for_each_block(batch, [&](const BlockTask& task) {
        const u32 group_size = 1u << (task.payload_size > 1 ? task.payload[1] % 8 : 0);
        StrategyRows<kStrategy> rows{group_size, rounds};
        return decode_bit_block(task, shared, classes, rows);
    });
    if (lane_id() == 0) {
        atomicAdd(num_rounds, static_cast<unsigned long long>(rounds));
    }
}

}  // namespace gompfs

#define GOMPFS_STRATEGY_KERNEL(name, strategy)                                                \
    extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta)                      \
        name(const unsigned char* compressed, const unsigned long long* payload_offsets,      \
             const unsigned int* payload_sizes, unsigned char* output,                        \
             const unsigned long long* output_offsets, const unsigned int* output_sizes,      \
             unsigned char* statuses, unsigned int* next_block, unsigned int num_blocks,      \
             unsigned long long* num_rounds) {                                                \
        extern __shared__ uint4 shared_memory[];                                              \
        const gompfs::Batch batch{compressed, payload_offsets, payload_sizes,                 \
                                  output,     output_offsets,  output_sizes,                  \
                                  statuses,   next_block,      num_blocks};                   \
        gompfs::decode_by<gompfs::MatchStrategy::strategy>(batch, shared_memory, num_rounds); \
    }

GOMPFS_STRATEGY_KERNEL(decode_bit_sc, sequential_copying)
GOMPFS_STRATEGY_KERNEL(decode_bit_mrr, multi_round_resolution)
GOMPFS_STRATEGY_KERNEL(decode_bit_de, dependency_elimination)

// Estimates the costs of the symbols of gompresso-bit in a block, for the backward parser: from the
// sequences of the pass before, or in the first pass from the sums of sum_literal_costs.cu and
// fixed costs.
//
// Launch: a CTA of kEncodeThreads threads per block.
// Mapping: the warps count the symbols of a block as encode_bit.cu does. Then each thread computes
//   the costs of some symbols.
// Reads: the content of block i, its sequences and their number, see EncodeBatch; in the first pass
//   sums at i * items_per_block(block_size) instead of the sequences.
// Writes: costs[i * kNumSymbols + s] for each symbol s, with its extra bits, in 1/kCostOfBit bit.
//   `literals` is working memory of content_size bytes.
// Shared memory: kEncodeBitBytes.
// Requires: as encode_bit.cu.
// Fails: never.
// Oracle: native/codec/parse/bit_costs.cpp (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/backward_parser.py.
#include "encode/bit_payload.cuh"
#include "encode/parse_batch.cuh"
#include "shared/ways.h"

namespace gompfs {

// Returns log2 of a positive number, in 1/kLog2One, from its highest nine bits.
__device__ inline int log2_from_bits(u32 number) {
    return (bits_of(number) - 1) * kLog2One + log2_of_mantissa(fraction_of(number));
}

// The number of symbols of the code that a symbol belongs to.
__device__ inline u32 total_of_code(u32 symbol, const u32* totals) {
    return symbol < kFirstToken ? totals[0] : symbol < kFirstOffset ? totals[1] : totals[2];
}

__device__ inline int extra_bits_of(u32 symbol) {
    return symbol < kFirstToken    ? 0
           : symbol < kFirstOffset ? token_extra_bits(static_cast<int>(symbol - kFirstToken))
                                   : offset_extra_bits(static_cast<int>(symbol - kFirstOffset));
}

// Adds up the counts of each code.
__device__ inline void sum_counts(const BitEncodeShared& shared, u32* totals) {
    if (warp_id() < kNumCodes) {
        const u32 first = warp_id() == 0 ? 0 : warp_id() == 1 ? kFirstToken : kFirstOffset;
        const u32 end = warp_id() == 0   ? kFirstToken
                        : warp_id() == 1 ? kFirstOffset
                                         : static_cast<u32>(kNumSymbols);
        u32 sum = 0;
        for (u32 symbol = first + lane_id(); symbol < end; symbol += kWarpSize) {
            sum += shared.counts[symbol];
        }
        sum = sum_of_warp(sum);
        if (lane_id() == 0) {
            totals[warp_id()] = sum;
        }
    }
    __syncthreads();
}

__device__ inline void estimate_costs(const EncodeTask& task, BitEncodeShared& shared, u16* costs) {
    prepare(shared);
    const WarpStart start = find_start(task, shared.sums);
    count_symbols(task, start, shared);
    sum_counts(shared, shared.sums);
    for (u32 symbol = threadIdx.x; symbol < kNumSymbols; symbol += kEncodeThreads) {
        const int twice_total = log2_from_bits(total_of_code(symbol, shared.sums) + 1) + kLog2One;
        const int twice_count = log2_from_bits(max(2 * shared.counts[symbol], 1u));
        costs[symbol] = static_cast<u16>(
            way_cost(symbol_cost(twice_total, twice_count), extra_bits_of(symbol)));
    }
}

// The costs of the first pass. A byte that does not occur costs nothing.
__device__ inline void set_first_costs(const EncodeTask& task, const u16* sums, u16* costs) {
    for (u32 byte = threadIdx.x; byte < kNumLiteralSymbols; byte += kEncodeThreads) {
        costs[byte] = 0;
    }
    __syncthreads();
    for (u32 position = threadIdx.x; position < task.size; position += kEncodeThreads) {
        costs[task.content[position]] = static_cast<u16>(sums[position + 1] - sums[position]);
    }
    for (u32 symbol = kFirstToken + threadIdx.x; symbol < kNumSymbols; symbol += kEncodeThreads) {
        costs[symbol] = static_cast<u16>(
            symbol < kFirstOffset ? first_token_cost(static_cast<int>(symbol - kFirstToken))
                                  : first_offset_cost(static_cast<int>(symbol - kFirstOffset)));
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kEncodeThreads, gompfs::kEncodeCtas)
    estimate_way_costs(const unsigned char* content, unsigned long long content_size,
                       const unsigned long long* sequences, const unsigned int* num_sequences,
                       unsigned char* literals, const unsigned short* sums, unsigned int block_size,
                       unsigned int max_sequences, unsigned int is_first, unsigned short* costs) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const EncodeBatch batch{content, content_size, sequences,  num_sequences, nullptr, nullptr,
                            nullptr, literals,     block_size, max_sequences, 0,       0};
    const EncodeTask task = task_of_cta(batch);
    costs += blockIdx.x * kNumSymbols;
    if (is_first != 0) {
        set_first_costs(task, sums + blockIdx.x * items_per_block(block_size), costs);
    } else {
        estimate_costs(task, *reinterpret_cast<BitEncodeShared*>(shared_memory), costs);
    }
}

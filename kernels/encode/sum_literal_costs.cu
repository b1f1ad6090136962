// Estimates what each byte of a block costs as a literal, and adds the costs up, for gompresso-bit.
//
// Launch: one CTA of kTileThreads threads per block.
// Mapping: the threads count the bytes, with a table for each warp. Then each thread computes the
//   cost of one byte value, and adds up kItemsPerThread bytes of each tile of kTileItems.
// Reads: the content of block i at content + i * block_size.
// Writes: sums[i * items_per_block(block_size) + p], the costs of all bytes before position p of
//   block i, for all p from 0 to the block's size; modulo 2^16.
// Shared memory: kSumBytes.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 7 bytes after the content are readable.
// Fails: never.
// Oracle: native/codec/parse/literal_costs.cpp (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/parser.py.
#include "encode/parse_batch.cuh"
#include "shared/cta_scan.cuh"

namespace gompfs {

constexpr u32 kNumBytes = 256;
static_assert(kNumBytes == kTileThreads, "a thread for each byte value");

struct SumShared {
    u32 counts[kWarpsPerTile][kNumBytes];
    u32 costs[kNumBytes];
    u32 scratch[kWarpsPerTile];
    u32 tile_sum;
};
constexpr unsigned kSumBytes = (sizeof(SumShared) + 15) / 16 * 16;

// Returns log2 of a positive number, in 1/kLog2One, from its highest nine bits.
__device__ inline int log2_of(u32 number) {
    return (bits_of(number) - 1) * kLog2One + log2_of_mantissa(fraction_of(number));
}

__device__ inline void count_bytes(const ParseBlock& block, SumShared& shared) {
    for (u32 warp = 0; warp < kWarpsPerTile; ++warp) {
        shared.counts[warp][threadIdx.x] = 0;
    }
    __syncthreads();
    u32* const counts = shared.counts[threadIdx.x / kWarpSize];
    const u32* const words = reinterpret_cast<const u32*>(block.content);
    for (u32 word = threadIdx.x; word < (block.size + 3) / 4; word += kTileThreads) {
        const u32 bytes = words[word];
        for (u32 byte = 0; byte < min(4u, block.size - 4 * word); ++byte) {
            atomicAdd(&counts[bytes >> 8 * byte & 255], 1u);
        }
    }
    __syncthreads();
}

__device__ inline void find_costs(u32 size, SumShared& shared) {
    u32 count = 0;
    for (u32 warp = 0; warp < kWarpsPerTile; ++warp) {
        count += shared.counts[warp][threadIdx.x];
    }
    shared.costs[threadIdx.x] =
        static_cast<u32>(literal_cost(log2_of(size + kNumBytes), log2_of(count + 1)));
    __syncthreads();
}

// Adds up the costs of one tile. Returns the sum up to its end. The sums of a thread are 16 bytes.
__device__ inline u32 add_tile(const u8* content, u32 before, SumShared& shared, u16* sums) {
    u32 costs[kItemsPerThread], total = 0;
    const u32* const words = reinterpret_cast<const u32*>(content + threadIdx.x * kItemsPerThread);
#pragma unroll
    for (u32 item = 0; item < kItemsPerThread; ++item) {
        costs[item] = shared.costs[words[item / 4] >> item % 4 * 8 & 255];
        total += costs[item];
    }
    u32 sum = before + sum_before(total, shared.scratch);
    u32 packed[kItemsPerThread / 2];
#pragma unroll
    for (u32 item = 0; item < kItemsPerThread; item += 2) {
        packed[item / 2] = (sum & 0xffff) | (sum + costs[item]) << 16;
        sum += costs[item] + costs[item + 1];
    }
    reinterpret_cast<uint4*>(sums)[threadIdx.x] = {packed[0], packed[1], packed[2], packed[3]};
    if (threadIdx.x == kTileThreads - 1) {
        shared.tile_sum = sum;
    }
    __syncthreads();
    return shared.tile_sum;
}

// The same for the last tile, one item at a time: it ends after `size` bytes.
__device__ inline void add_last_tile(const u8* content, u32 size, u32 before, SumShared& shared,
                                     u16* sums) {
    const u32 begin = threadIdx.x * kItemsPerThread;
    u32 total = 0;
    for (u32 item = begin; item < min(begin + kItemsPerThread, size); ++item) {
        total += shared.costs[content[item]];
    }
    u32 sum = before + sum_before(total, shared.scratch);
    for (u32 item = begin; item < min(begin + kItemsPerThread, size + 1); ++item) {
        sums[item] = static_cast<u16>(sum);
        sum += item < size ? shared.costs[content[item]] : 0;
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kTileThreads)
    sum_literal_costs(const unsigned char* content, unsigned long long content_size,
                      unsigned int block_size, unsigned short* sums) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    SumShared& shared = *reinterpret_cast<SumShared*>(shared_memory);
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    sums += blockIdx.x * items_per_block(block_size);
    count_bytes(block, shared);
    find_costs(block.size, shared);
    u32 before = 0, tile = 0;
    for (; tile + kTileItems <= block.size; tile += kTileItems) {
        before = add_tile(block.content + tile, before, shared, sums + tile);
    }
    add_last_tile(block.content + tile, block.size - tile, before, shared, sums + tile);
}

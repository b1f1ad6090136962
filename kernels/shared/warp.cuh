// Operations that the lanes of a warp do together, and loads of bits.
//
// The warp functions must be called by all 32 lanes. Where a PTX instruction is used, a plain C++
// version follows for kernels/host, which runs the same kernels on the CPU.
#pragma once

// A function that is not inlined, where copies of it would fill the instruction cache.
#ifdef __CUDACC_RTC__
#define GOMPFS_NOINLINE __noinline__
#else
#define GOMPFS_NOINLINE [[gnu::noinline]]
#endif

namespace gompfs {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 kAllLanes = 0xffffffffu;
constexpr int kWarpSize = 32;

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x % kWarpSize); }

// A mask of the lanes below this one.
__device__ inline u32 lanes_below(int lane) { return (1u << lane) - 1; }

// Starts to load the cache line at an address into the L2 cache, without waiting for it.
__device__ inline void prefetch(const u8* address) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#else
    static_cast<void>(address);
#endif
}

// Waits until another warp of the CTA has come to the same barrier, a number from 1 to 15. Then
// each of the two sees all writes of the other to shared memory.
__device__ inline void meet_warp_at(u32 barrier) {
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory");
#else
    cuda_on_host::meet_two_warps(barrier);
#endif
}

// The sum of the values of this lane and all lower lanes.
__device__ inline u32 inclusive_sum(u32 value, int lane) {
#pragma unroll
    for (int step = 1; step < kWarpSize; step *= 2) {
#ifdef __CUDA_ARCH__
        // The shuffle itself sets a predicate that says whether that lower lane exists.
        asm volatile(
            "{\n.reg .pred exists;\n.reg .u32 below;\n"
            "shfl.sync.up.b32 below|exists, %0, %1, 0, 0xffffffff;\n"
            "@exists add.u32 %0, %0, below;\n}"
            : "+r"(value)
            : "r"(step));
#else
        const u32 below = __shfl_up_sync(kAllLanes, value, step);
        value += lane >= step ? below : 0;
#endif
    }
    return value;
}

// The sum of a value over the lanes of the warp, in all lanes.
__device__ inline u32 sum_of_warp(u32 value) {
    return __shfl_sync(kAllLanes, inclusive_sum(value, lane_id()), kWarpSize - 1);
}

// The number of lanes whose value is not above `item`. Values must not decrease from lane to lane.
__device__ inline int count_up_to(u32 ascending, u32 item) {
    int count = 0;
    for (int step = kWarpSize / 2; step > 0; step /= 2) {
        const u32 value = __shfl_sync(kAllLanes, ascending, count + step - 1);
        count += value <= item ? step : 0;
    }
    return count;  // never 32: the value of the last lane is always above item
}

// The 64 bits from a bit position on. `words` must be aligned to 4 bytes and readable for 12 bytes
// from the word that holds the position.
__device__ inline u64 load_bits(const u32* words, u32 position) {
    const u32* word = words + position / 32;
    const u32 low = word[0], middle = word[1], high = word[2];
    return __funnelshift_r(low, middle, position % 32) |
           static_cast<u64>(__funnelshift_r(middle, high, position % 32)) << 32;
}

__device__ inline u32 low_bits(u64 bits, u32 count) {
    return static_cast<u32>(bits) & ((1u << count) - 1);
}

}  // namespace gompfs

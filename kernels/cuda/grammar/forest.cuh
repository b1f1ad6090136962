// A forest of rules in device memory, and what threads of the grammar's kernels have in common.
//
// A forest is what kernels/cpu/grammar/forest.h says: nodes are files, then rules; starts (CSR, by
// node) leads to elements, which are words or, with kNode, nodes. No element stands for no words.
#pragma once

#include "warp.cuh"

namespace gompfs {

constexpr u32 kNode = 0x80000000u;

__device__ inline u64 thread_number() {
    return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline u64 num_threads() { return static_cast<u64>(gridDim.x) * blockDim.x; }

// Calls take(index) for each index from begin up to end, every thread of the launch for some.
template <class Take>
__device__ inline void for_each_index(u64 begin, u64 end, Take&& take) {
    for (u64 index = begin + thread_number(); index < end; index += num_threads()) {
        take(index);
    }
}

// The last of `count` ascending numbers that is not above `value`; the first one never is.
__device__ inline u64 find_last(const u64* numbers, u64 count, u64 value) {
    u64 low = 0;
    while (count > 1) {
        const u64 half = count / 2;
        const bool above = numbers[low + half] > value;
        low += above ? 0 : half;
        count = above ? half : count - half;
    }
    return low;
}

}  // namespace gompfs

// Distributes the elements of an array over all threads of a launch, and searches sorted arrays.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

__device__ inline u64 thread_number() {
    return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline u64 num_threads() { return static_cast<u64>(gridDim.x) * blockDim.x; }

// Calls take(index) for each index in [begin, end). The indexes are distributed over all threads of
// the launch.
template <class Take>
__device__ inline void for_each_index(u64 begin, u64 end, Take&& take) {
    for (u64 index = begin + thread_number(); index < end; index += num_threads()) {
        take(index);
    }
}

// The index of the last of `count` ascending numbers that is not above `value`. The first number
// must not be above it.
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

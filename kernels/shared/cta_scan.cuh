// Prefix sums over the threads of a CTA, and the size of the tiles that a long array is
// cut into.
//
// A scan takes two steps: a scan in each warp by shuffles, then every thread combines the results
// of the lower warps from shared memory.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kTileThreads = 256;
constexpr u32 kItemsPerThread = 8;
constexpr u32 kTileItems = kTileThreads * kItemsPerThread;
constexpr u32 kWarpsPerTile = kTileThreads / kWarpSize;

// Returns the sum of the values of all threads before this one; 0 for the first thread. All threads
// of the CTA must call it. `scratch` is a word of shared memory for each warp of the CTA
// (kWarpsPerTile in a CTA of kTileThreads). It can be used again after the next barrier.
__device__ inline u32 sum_before(u32 value, u32* scratch) {
    const int lane = lane_id();
    const u32 warp = threadIdx.x / kWarpSize;
    u32 inclusive = value;
#pragma unroll
    for (int step = 1; step < kWarpSize; step *= 2) {
        const u32 below = __shfl_up_sync(kAllLanes, inclusive, step);
        inclusive = lane >= step ? below + inclusive : inclusive;
    }
    if (lane == kWarpSize - 1) {
        scratch[warp] = inclusive;
    }
    __syncthreads();
    u32 before = 0;
    for (u32 index = 0; index < warp; ++index) {
        before += scratch[index];
    }
    const u32 below = __shfl_up_sync(kAllLanes, inclusive, 1);
    return lane == 0 ? before : before + below;
}

}  // namespace gompfs

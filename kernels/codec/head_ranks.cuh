// Gives each symbol of a head its rank: the base of its class, plus the number of symbols of the
// class that have lower numbers.
//
// Each warp ranks a run of symbols. First it counts how many of them each class has; then the
// counts of the warps before it give the rank at which the class goes on in its run.
#pragma once

#include "codec/head.cuh"
#include "codec/head_arrays.cuh"
#include "shared/warp.cuh"

namespace gompfs {

// The symbols that one warp ranks.
struct SymbolRun {
    u32 first, end;

    __device__ static SymbolRun of_warp(const HeadPlan& plan, u32 warp) {
        const u32 num_rows = (plan.num_symbols + kWarpSize - 1) / kWarpSize;
        const u32 rows_per_warp = (num_rows + kHeadWarps - 1) / kHeadWarps;
        const u32 size = rows_per_warp * kWarpSize;
        return {min(warp * size, plan.num_symbols), min((warp + 1) * size, plan.num_symbols)};
    }
};

// Replaces the counts of a class by the rank at which it begins in each run. Returns whether its
// symbols have all ranks of the class that are below the number of symbols. For one thread.
__device__ inline bool place_class(HeadShared& shared, u32 number_class) {
    const u32 num_symbols = shared.plan.num_symbols;
    const u32 base = class_base(number_class);
    u32 next = base;
    for (u32 warp = 0; warp < kHeadWarps; ++warp) {
        u32& in_run = shared.next_ranks[warp][number_class];
        const u32 count = in_run;
        in_run = next;
        next += count;
    }
    const u32 end = base + (1u << number_class / 2);
    return next == max(base, min(end, num_symbols));
}

// Ranks the symbols of this warp's run.
__device__ inline void rank_run(const HeadPlan& plan, const SymbolRun& run, u32* next_ranks) {
    const int lane = lane_id();
    for (u32 first = run.first; first < run.end; first += kWarpSize) {
        const u32 symbol = first + lane;
        const bool is_active = symbol < run.end;
        const u32 number_class = is_active ? plan.classes[symbol] : kNumClasses;
        const u32 same = __match_any_sync(kAllLanes, number_class);
        if (is_active) {
            const u32 rank = next_ranks[number_class] + __popc(same & lanes_below(lane));
            plan.ranks[symbol] = rank;
        }
        __syncwarp();
        if (is_active && same >> lane == 1) {  // the last lane with this class
            next_ranks[number_class] += __popc(same);
        }
        __syncwarp();
    }
}

// Returns false in all threads if the classes of the symbols do not give each rank once. For all
// threads of the CTA; ends with a barrier.
__device__ inline bool rank_symbols(HeadShared& shared) {
    const HeadPlan& plan = shared.plan;
    const u32 warp = threadIdx.x / kWarpSize;
    u32* const next_ranks = shared.next_ranks[warp];
    for (u32 number_class = lane_id(); number_class < kNumClasses; number_class += kWarpSize) {
        next_ranks[number_class] = 0;
    }
    __syncwarp();
    const SymbolRun run = SymbolRun::of_warp(plan, warp);
    for (u32 symbol = run.first + lane_id(); symbol < run.end; symbol += kWarpSize) {
        atomicAdd(&next_ranks[plan.classes[symbol]], 1u);
    }
    __syncthreads();
    bool is_valid = true;
    for (u32 index = threadIdx.x; index < kNumClasses; index += kHeadThreads) {
        is_valid = is_valid && place_class(shared, index);
    }
    if (any_thread(!is_valid)) {
        return false;
    }
    rank_run(plan, run, next_ranks);
    __syncthreads();
    return true;
}

}  // namespace gompfs

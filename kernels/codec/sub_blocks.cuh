// Finds the sub-blocks of a payload, one for each lane of a warp.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

// Reads the sizes of 32 sub-blocks from fields of `width` bits, one per lane. Sets where this
// lane's sub-block begins and ends. Returns where the last sub-block ends. Positions are in bits
// from the payload's start.
__device__ inline u32 locate_sub_blocks(const u32* words, u32 fields, u32 width, u32 base,
                                        u32 start, u32& begin, u32& end) {
    const int lane = lane_id();
    const u32 size = base + low_bits(load_bits(words, fields + lane * width), width);
    end = start + inclusive_sum(size, lane);
    begin = end - size;
    return __shfl_sync(kAllLanes, end, kWarpSize - 1);
}

}  // namespace gompfs

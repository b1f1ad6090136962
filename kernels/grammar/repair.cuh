// What both halves of batch Re-Pair on a device share: repair.cu makes the rules round by round,
// repair_rules.cu keeps those that pay. repair.cu explains the algorithm.
#pragma once

#include "shared/grid.cuh"

namespace gompfs {

constexpr u32 kSplitter = 0x7fffffff;
// A bit on a symbol: the digram that starts here is known to occur only once.
constexpr u32 kUnique = 0x80000000;

// The part that contains a position: the last part that starts at the position or before it.
__device__ inline u32 part_of(const u32* starts, u32 num_parts, u32 position) {
    u32 low = 0, high = num_parts;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        (starts[middle] <= position ? low : high) = middle;
    }
    return low;
}

}  // namespace gompfs

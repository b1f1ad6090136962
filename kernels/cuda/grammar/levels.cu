// Traversal over topological levels: edges in the order of the level that they lead to.
//
// All that an edge leads from is done when its level begins, so that edges of a level need no order
// and no mask, and each is a thread's: however long a rule is, threads share it evenly. The order
// is made once.
//
// Launch: CTAs of any size, any number of them, where nothing else is said. No shared memory.
#include "grammar/forest.cuh"

using gompfs::u32;
using gompfs::u64;

// nodes[i] becomes the node that element i belongs to.
// Mapping: a thread for each element, which looks for its node among the starts.
extern "C" __global__ void name_nodes(const u64* starts, u64 num_nodes, u64 num_elements,
                                      u32* nodes) {
    gompfs::for_each_index(0, num_elements, [&](u64 index) {
        nodes[index] = static_cast<u32>(gompfs::find_last(starts, num_nodes, index));
    });
}

// targets[to] += min(sources[from], limit) for the edges from `begin` up to `end`.
// Mapping: a thread for each edge; edges that lead to the same place add one after another.
extern "C" __global__ void add_along_edges(const u32* from, const u32* to, u64 begin, u64 end,
                                           const u64* sources, u64* targets, u64 limit) {
    gompfs::for_each_index(begin, end, [&](u64 edge) {
        atomicAdd(&targets[to[edge]], min(sources[from[edge]], limit));
    });
}

// The same for levels in a row, each of which needs the one before: level i has the edges from
// level_starts[i] up to level_starts[i + 1]. sources and targets are one array.
// Launch: one CTA, so that levels of few edges cost a barrier and no launch.
extern "C" __global__ void __launch_bounds__(1024)
    add_along_levels(const u32* from, const u32* to, const u64* level_starts, u64 first_level,
                     u64 last_level, volatile u64* values, u64 limit) {
    for (u64 level = first_level; level < last_level; ++level) {
        gompfs::for_each_index(level_starts[level], level_starts[level + 1], [&](u64 edge) {
            const u64 value = values[from[edge]];
            atomicAdd(const_cast<u64*>(&values[to[edge]]), min(value, limit));
        });
        __syncthreads();
    }
}

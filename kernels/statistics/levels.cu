// Traversal of a forest by topological levels, for numbers (tables.cu has the same for tables).
//
// Edges are sorted once by the level of their target node. When a level begins, the values of all
// its source nodes are final. So the edges of a level need no order and no mask, and each edge gets
// a thread: a long rule is spread over many threads (G-TADOC, Zhang et al., ICDE 2021, section 4.1,
// has the same goal with groups of threads).
//
// Launch: CTAs of any size, any number of them; add_along_levels: one CTA.
// Mapping: a thread per element (name_nodes) or per edge; a thread takes several if there are more.
// Reads, Writes: see each kernel.
// Shared memory: none.
// Requires: node numbers within the arrays; every edge leads to a higher level than its source.
// Fails: never; sums are taken modulo 2^64, and the callers bound them by `limit`.
// Oracle: native/statistics/traversal.cpp (tests/statistics/test_device_traversal.py).
// Caller: gompfs/statistics/gpu/traversal.py and forest.py.
#include "statistics/forest.cuh"

using gompfs::u32;
using gompfs::u64;

// Sets nodes[i] to the node that holds element i.
// Mapping: a thread per element; it finds its node in `starts` by binary search.
extern "C" __global__ void name_nodes(const u64* starts, u64 num_nodes, u64 num_elements,
                                      u32* nodes) {
    gompfs::for_each_index(0, num_elements, [&](u64 index) {
        nodes[index] = static_cast<u32>(gompfs::find_last(starts, num_nodes, index));
    });
}

// Adds min(sources[from], limit) to targets[to] for the edges in [begin, end).
// Mapping: a thread per edge; edges with the same target add atomically. With few files, or few
// nodes that have a word, most edges carry nothing.
extern "C" __global__ void add_along_edges(const u32* from, const u32* to, u64 begin, u64 end,
                                           const u64* sources, u64* targets, u64 limit) {
    gompfs::for_each_index(begin, end, [&](u64 edge) {
        const u64 value = sources[from[edge]];
        if (value != 0) {
            atomicAdd(&targets[to[edge]], min(value, limit));
        }
    });
}

// As add_along_edges, for consecutive levels of which each needs the one before. Level i has the
// edges in [level_starts[i], level_starts[i + 1]). `values` is source and target.
// Launch: one CTA: a level with few edges then costs a barrier instead of a launch.
extern "C" __global__ void __launch_bounds__(1024)
    add_along_levels(const u32* from, const u32* to, const u64* level_starts, u64 first_level,
                     u64 last_level, volatile u64* values, u64 limit) {
    for (u64 level = first_level; level < last_level; ++level) {
        gompfs::for_each_index(level_starts[level], level_starts[level + 1], [&](u64 edge) {
            const u64 value = values[from[edge]];
            if (value != 0) {
                atomicAdd(const_cast<u64*>(&values[to[edge]]), min(value, limit));
            }
        });
        __syncthreads();
    }
}

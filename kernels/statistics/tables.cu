// Traversal of a forest with local tables, by topological levels (levels.cu has the same for
// numbers).
//
// Each node passes its table on to other nodes: top-down, files and rules pass the files' weights
// to the rules that they use; bottom-up, a rule passes the counts of its terms to the nodes that
// use it. The edges into one level are processed together (see levels.cu).
//
// Launch: CTAs of any size, any number of them; add_tables_of_levels: one CTA.
// Mapping: a thread per item (add_items) or per slot of a table.
// Reads: the tables of the nodes below the level.
// Writes: the tables of the target nodes.
// Shared memory: none.
// Requires: every edge leads to a higher level; tables at least as large as the first pass says.
// Fails: sets *overflow if a table is full; the item is dropped and the caller must check the flag.
// Oracle: native/statistics/traversal.cpp (tests/statistics/test_device_traversal.py).
// Caller: gompfs/statistics/gpu/traversal.py (LevelFlow) and tables.py.
#include "statistics/tables.cuh"

using gompfs::u32;
using gompfs::u64;

// Adds 1 to the count of items[i] in the table of owners[i].
// Mapping: a thread per item.
extern "C" __global__ void add_items(const u32* owners, const u32* items, u64 num_items,
                                     const u64* table_starts, u32* locks, u32* entries, u32* keys,
                                     u64* values, u32* nexts, u32* sizes, u32* overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    gompfs::for_each_index(0, num_items, [&](u64 index) {
        gompfs::Table(tables, owners[index]).add(items[index], 1);
    });
}

// Adds the table of from[i] to that of to[i] for the edges in [first, last). slot_starts[i] is the
// sum of the capacities of the tables of the edges before i.
// Mapping: a thread per slot of the source tables.
extern "C" __global__ void add_tables(const u32* from, const u32* to, const u64* slot_starts,
                                      u64 first, u64 last, const u64* table_starts, u32* locks,
                                      u32* entries, u32* keys, u64* values, u32* nexts, u32* sizes,
                                      u32* overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    gompfs::add_tables(tables, tables, from, to, slot_starts, first, last);
}

// Adds the counts of the tables of some owners to sums[item], each weights[owner] times. The sums
// are the counts of all files (G-TADOC, algorithm 2). slot_starts is as in add_tables.
// Mapping: a thread per slot; equal items add atomically.
extern "C" __global__ void sum_tables(const u32* owners, const u64* slot_starts, u64 num_owners,
                                      const u64* table_starts, const u32* items, const u64* values,
                                      const u32* sizes, const u64* weights, u64* sums) {
    gompfs::for_each_index(0, slot_starts[num_owners], [&](u64 index) {
        const u64 number = gompfs::find_last(slot_starts, num_owners, index);
        const u32 owner = owners[number];
        const u64 slot = index - slot_starts[number];
        if (slot < sizes[owner]) {
            const u64 at = table_starts[owner] + slot;
            atomicAdd(&sums[items[at]], values[at] * weights[owner]);
        }
    });
}

// As add_tables, for consecutive levels of which each needs the one before. Level i has the edges
// in [level_starts[i], level_starts[i + 1]). Launch: one CTA: a level with few slots then costs a
// barrier instead of a launch.
extern "C" __global__ void __launch_bounds__(1024)
    add_tables_of_levels(const u32* from, const u32* to, const u64* slot_starts,
                         const u64* level_starts, u64 first_level, u64 last_level,
                         const u64* table_starts, u32* locks, u32* entries, u32* keys, u64* values,
                         u32* nexts, u32* sizes, u32* overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    for (u64 level = first_level; level < last_level; ++level) {
        gompfs::add_tables(tables, tables, from, to, slot_starts, level_starts[level],
                           level_starts[level + 1]);
        __syncthreads();
    }
}

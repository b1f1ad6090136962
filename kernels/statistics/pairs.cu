// Turns the counts of local tables into sorted pairs, and adds up the counts of equal pairs.
//
// A pair consists of the owner of a table and an item in the table. Its key is one 64-bit number:
// both parts shifted to their positions. If the counts fit too, the count is stored in the lowest
// count_bits bits of the key, so that sorting moves a single number per pair. Otherwise count_bits
// is 0 and `counts` is a separate array. The caller sorts the keys between write_pairs and
// find_new_pairs.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per entry of a table, or per pair.
// Reads, Writes: see each kernel.
// Shared memory: none.
// Requires: owner, item and count fit in the bits that the shifts leave for them.
// Fails: never.
// Oracle: the reports of the CPU (tests/statistics/test_device_traversal.py).
// Caller: add_up in gompfs/statistics/gpu/local_tables.py.
#include "statistics/forest.cuh"

using gompfs::u32;
using gompfs::u64;

// Copies the table or list of each edge's source node: entry i of edge e becomes the pair
// (targets[e], item), stored at keys[copy_starts[e] + i]. `counts` is null if keys hold the counts.
// Mapping: a thread per entry; it finds its edge in copy_starts by binary search.
extern "C" __global__ void copy_tables(const u32* sources, const u32* targets,
                                       const u64* copy_starts, u64 num_edges, u64 num_copies,
                                       const u64* table_starts, const u32* items, const u64* values,
                                       u32 owner_shift, u32 item_shift, u32 count_bits, u64* keys,
                                       u64* counts) {
    gompfs::for_each_index(0, num_copies, [&](u64 index) {
        const u64 edge = gompfs::find_last(copy_starts, num_edges, index);
        const u64 entry = table_starts[sources[edge]] + (index - copy_starts[edge]);
        const u64 key = static_cast<u64>(targets[edge]) << owner_shift |
                        static_cast<u64>(items[entry]) << item_shift;
        if (counts == nullptr) {
            keys[index] = key << count_bits | values[entry];
        } else {
            keys[index] = key;
            counts[index] = values[entry];
        }
    });
}

// Writes the pairs (owners[i], items[i]), each with a count of 1.
// Mapping: a thread per pair.
extern "C" __global__ void write_pairs(const u32* owners, const u32* items, u64 num_items,
                                       u32 owner_shift, u32 item_shift, u32 count_bits, u64* keys,
                                       u64* counts) {
    gompfs::for_each_index(0, num_items, [&](u64 index) {
        const u64 key = static_cast<u64>(owners[index]) << owner_shift |
                        static_cast<u64>(items[index]) << item_shift;
        if (counts == nullptr) {
            keys[index] = key << count_bits | 1;
        } else {
            keys[index] = key;
            counts[index] = 1;
        }
    });
}

// Sets is_new[i] to whether sorted pair i differs from the pair before it.
// Mapping: a thread per pair.
extern "C" __global__ void find_new_pairs(const u64* keys, u64 num_pairs, u32 count_bits,
                                          u32* is_new) {
    gompfs::for_each_index(0, num_pairs, [&](u64 index) {
        is_new[index] = index == 0 || keys[index] >> count_bits != keys[index - 1] >> count_bits;
    });
}

// Adds up the counts of equal pairs. Pair i goes to index numbers[i] - 1. `sums` must be 0 before.
// Mapping: a thread per pair; equal pairs are neighbours and add atomically.
extern "C" __global__ void add_equal_pairs(const u64* keys, const u64* counts, const u64* numbers,
                                           u64 num_pairs, u32 count_bits, u64* different_keys,
                                           u64* sums) {
    gompfs::for_each_index(0, num_pairs, [&](u64 index) {
        const u64 target = numbers[index] - 1;
        if (index == 0 || numbers[index - 1] - 1 != target) {
            different_keys[target] = keys[index] >> count_bits;
        }
        const u64 mask = (u64{1} << count_bits) - 1;
        atomicAdd(&sums[target], counts == nullptr ? keys[index] & mask : counts[index]);
    });
}

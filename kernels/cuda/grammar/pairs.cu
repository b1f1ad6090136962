// Counts of pairs, as local tables have them, brought into order and added up.
//
// A pair, of the owner of a table and an item in it, is a key: both numbers, each shifted to its
// place. Where it fits, the count is in the lowest count_bits of the key, so that one number is
// sorted and nothing has to follow it; else count_bits is 0 and counts lie beside the keys.
//
// Launch: CTAs of any size, any number of them. No shared memory.
#include "grammar/forest.cuh"

using gompfs::u32;
using gompfs::u64;

// Copies the table, or list, of the source of each edge: entry i of edge e becomes the pair
// (targets[e], item) at place copy_starts[e] + i of keys. counts is null where keys hold them.
// Mapping: a thread for each entry, which looks for its edge among the starts.
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

// The pairs (owners[i], items[i]), each of them once.
// Mapping: a thread for each pair.
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

// is_new[i] becomes whether pair i, of pairs in order, is another one than the pair before it.
// Mapping: a thread for each pair.
extern "C" __global__ void find_new_pairs(const u64* keys, u64 num_pairs, u32 count_bits,
                                          u32* is_new) {
    gompfs::for_each_index(0, num_pairs, [&](u64 index) {
        is_new[index] = index == 0 || keys[index] >> count_bits != keys[index - 1] >> count_bits;
    });
}

// Adds up the counts of equal pairs: places[i] - 1 is where pair i goes. sums is 0 before.
// Mapping: a thread for each pair; equal ones, which are neighbours, add one after another.
extern "C" __global__ void add_equal_pairs(const u64* keys, const u64* counts, const u64* places,
                                           u64 num_pairs, u32 count_bits, u64* different_keys,
                                           u64* sums) {
    gompfs::for_each_index(0, num_pairs, [&](u64 index) {
        const u64 place = places[index] - 1;
        if (index == 0 || places[index - 1] - 1 != place) {
            different_keys[place] = keys[index] >> count_bits;
        }
        const u64 mask = (u64{1} << count_bits) - 1;
        atomicAdd(&sums[place], counts == nullptr ? keys[index] & mask : counts[index]);
    });
}

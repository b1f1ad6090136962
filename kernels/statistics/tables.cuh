// Local tables: hash tables of counts in one memory pool, to which any number of threads add at
// once (G-TADOC, Zhang et al., ICDE 2021, section 4.1).
//
// Every owner (a node, a file or a term) has a table. A first pass computes an upper bound of the
// number of items that a table can get; the table has that many slots and as many buckets. A bucket
// consists of a lock and an entry, which is the first slot of the bucket's chain. A slot has a key,
// a value and the next slot of its chain.
//
// A key that is present is found without a lock and its value is added to atomically. Only a thread
// that adds a new key locks the bucket; it looks for the key again, takes the table's next free
// slot, and writes the bucket's entry last, so that readers without the lock see complete slots
// only. Slots are taken in order and never freed, so slots 0 .. size - 1 are the table's content,
// readable without the buckets.
#pragma once

#include "statistics/forest.cuh"

namespace gompfs {

constexpr u32 kEndOfChain = 0xffffffffu;

// The buffers of all tables. The slots and buckets of an owner are at [starts[owner], starts[owner
// + 1]) in each buffer. In an empty table entries are kEndOfChain, locks are 0 and the size is 0.
struct Tables {
    const u64* starts;  // by owner; one more after the last
    u32* locks;
    volatile u32* entries;
    volatile u32* keys;
    volatile u64* values;
    volatile u32* nexts;
    volatile u32* sizes;
    u32* overflow;  // set if a table was given more items than it has slots for
};

struct Table {
    const Tables& tables;
    const u64 start;
    const u32 owner, capacity;

    __device__ Table(const Tables& tables, u32 owner)
        : tables(tables),
          start(tables.starts[owner]),
          owner(owner),
          capacity(static_cast<u32>(tables.starts[owner + u64{1}] - start)) {}

    // Adds to the value of a key. Locks the bucket only to insert a new key.
    __device__ void add(u32 key, u64 value) const {
        if (capacity == 0) {
            *tables.overflow = 1;
            return;
        }
        const u64 bucket = start + (key * 0x9e3779b1u >> 7) % capacity;
        if (add_to_chain(bucket, key, value)) {
            return;
        }
        for (bool is_done = false; !is_done;) {
            if (atomicCAS(&tables.locks[bucket], 0u, 1u) == 0) {
                __threadfence();
                if (!add_to_chain(bucket, key, value)) {
                    add_slot(bucket, key, value);
                }
                __threadfence();
                atomicExch(&tables.locks[bucket], 0u);
                is_done = true;
            }
        }
    }

    // Adds the item in a slot, if the slot is used, to another table (possibly one of another set).
    __device__ void add_slot_to(const Table& target, u64 slot) const {
        if (slot < tables.sizes[owner]) {
            target.add(tables.keys[start + slot], tables.values[start + slot]);
        }
    }

  private:
    __device__ bool add_to_chain(u64 bucket, u32 key, u64 value) const {
        for (u32 slot = tables.entries[bucket]; slot != kEndOfChain;
             slot = tables.nexts[start + slot]) {
            if (tables.keys[start + slot] == key) {
                atomicAdd(const_cast<u64*>(&tables.values[start + slot]), value);
                return true;
            }
        }
        return false;
    }

    // Readers without the lock reach the slot only through the entry, which is written last.
    __device__ void add_slot(u64 bucket, u32 key, u64 value) const {
        const u32 slot = atomicAdd(const_cast<u32*>(&tables.sizes[owner]), 1u);
        if (slot >= capacity) {
            *tables.overflow = 1;
            return;
        }
        tables.keys[start + slot] = key;
        tables.values[start + slot] = value;
        tables.nexts[start + slot] = tables.entries[bucket];
        __threadfence();
        tables.entries[bucket] = slot;
    }
};

// Adds the tables of from[first .. last) to the tables of to[first .. last). Slot i of the table of
// from[edge] has the index slot_starts[edge] + i.
// Mapping: a thread per slot; it finds its edge in slot_starts by binary search.
__device__ inline void add_tables(const Tables& tables, const Tables& targets, const u32* from,
                                  const u32* to, const u64* slot_starts, u64 first, u64 last) {
    for_each_index(slot_starts[first], slot_starts[last], [&](u64 index) {
        const u64 edge = first + find_last(slot_starts + first, last - first, index);
        Table(tables, from[edge]).add_slot_to(Table(targets, to[edge]), index - slot_starts[edge]);
    });
}

}  // namespace gompfs

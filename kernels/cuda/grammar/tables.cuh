// Local tables of counts in one memory pool: hash tables that any number of threads add to at once
// (G-TADOC section 4.1).
//
// The table of an owner has room for as many items as a first pass found that it can get at most,
// and as many buckets. A bucket has a lock and an entry, the first slot of its chain; a slot has a
// key, a value and the next slot. Slots are taken from the front of a table and never given back,
// so that they are the table's content without its buckets.
#pragma once

#include "grammar/forest.cuh"

namespace gompfs {

constexpr u32 kEndOfChain = 0xffffffffu;

// Slots and buckets lie at starts[owner] in each buffer. Entries are kEndOfChain and locks 0 in an
// empty table, its size is 0.
struct Tables {
    const u64* starts;  // by owner; one more behind the last
    u32* locks;
    volatile u32* entries;
    volatile u32* keys;
    volatile u64* values;
    volatile u32* nexts;
    volatile u32* sizes;
    u32* overflow;  // set where a table was given more items than it has room for
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

    // Adds to the value of a key. Only who puts a new key into a bucket locks it.
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

    // Adds what is in a slot, if anything, to another table, which may be of other tables.
    __device__ void add_slot_to(const Table& target, u64 slot) const {
        if (slot < tables.sizes[owner]) {
            target.add(tables.keys[start + slot], tables.values[start + slot]);
        }
    }

    // Adds all that is in the table to another one.
    __device__ void add_all_to(const Table& target) const {
        for (u64 slot = 0; slot < capacity; ++slot) {
            add_slot_to(target, slot);
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

    // Readers find the slot by the entry only, which is written last.
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

}  // namespace gompfs

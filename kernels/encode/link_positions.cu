// Links each position of a block to the previous position with the same hash, as
// native/codec/parse/position_links.h does.
//
// A table has the last position with each hash. Warps take positions in order, 32 at a time. The
// table gives the last position before the 32. Equal hashes among the 32 are found by claims: each
// lane exchanges a number with the entry of a small table at its hash. The numbers grow from each
// group of 32 to the next, so the old number tells a lane whether another lane of its group has
// claimed the entry before. Only then must the lanes compare their hashes.
//
// Most of this work needs no order, so all warps of a CTA do it at the same time, each for
// kPositionsPerTurn positions. Then the warps take turns to read and change the table. A turn takes
// 100 cycles: a warp issues loads and stores in order, but need not wait for the loaded values. A
// warp waits only for the turn of the warp before it; all other warps go on.
//
// The table of a block is divided by the highest bits of the hash: so it fits into shared memory,
// and a CTA for each part works on the block at the same time.
//
// Launch: one CTA of kLinkThreads threads per block and table: num_tables tables for the hashes of
//   four bytes, then those for the hashes of three bytes, if there are any.
// Mapping: lane i takes position i of each group of 32, warp i every kLinkWarps-th kGroups groups.
// Reads: the content of block i at content + i * block_size.
// Writes: links[i * items_per_block(block_size) + p] for each position p of block i, and
//   short_links.
// Shared memory: 2^table_bits positions, and kNumClaims words for each warp.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 7 bytes after the content are readable. The tables of a hash have as many entries
//   together as it has values. link_narrow: block_size is at most kMaxNarrowBlock.
// Fails: never.
// Oracle: native/codec/parse/position_links.h (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/parser.py.
#include "encode/parse_batch.cuh"

namespace gompfs {

// Groups of 32 positions that are under way at once.
constexpr u32 kGroups = 8;
// The warps of a CTA take turns with so many positions.
constexpr u32 kPositionsPerTurn = kGroups * kWarpSize;
constexpr u32 kLinkWarps = 8;
constexpr u32 kLinkThreads = kLinkWarps * kWarpSize;
constexpr u32 kPositionsPerRound = kLinkWarps * kPositionsPerTurn;
// Entries of the table of a warp in which lanes find equal hashes.
constexpr u32 kNumClaims = 256;
// If more lanes may have equal hashes, a vote finds them, which takes some 70 cycles.
constexpr int kMaxLost = 4;

// The barrier at which a warp waits for the turn of the warp before it.
__device__ inline u32 barrier_before(u32 warp) { return 1 + warp; }

// One table: a part of the values of a hash.
struct HashTable {
    bool is_short;
    int hash_bits;
    int table_bits;
    u32 part;  // the highest bits of the hashes in this table
};

// The four bytes at a position of each group, as two words that contain them.
struct GroupWords {
    u32 low[kGroups], high[kGroups];
};

// Loads the bytes of the groups from position `first` on, without waiting for them.
__device__ inline GroupWords load_groups(const ParseBlock& block, u32 first) {
    GroupWords words{};
    const u32* const content = reinterpret_cast<const u32*>(block.content);
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group) {
        const u32 position = first + group * kWarpSize + lane_id();
        if (position < block.num_linked) {
            words.low[group] = content[position / 4];
            words.high[group] = content[position / 4 + 1];
        }
    }
    return words;
}

// The slot of this lane's position in the table; other lanes have numbers of their own.
__device__ inline u32 slot_of(const ParseBlock& block, const HashTable& table, u32 low, u32 high,
                              u32 position) {
    const u32 word = __funnelshift_r(low, high, position % 4 * 8);
    const u32 hash =
        table.is_short ? hash_three(word, table.hash_bits) : hash_four(word, table.hash_bits);
    const bool is_here = position < block.num_linked && hash >> table.table_bits == table.part;
    return is_here ? hash & ((1u << table.table_bits) - 1) : ~static_cast<u32>(lane_id());
}

// The lanes with the same slot. Of several lanes with a slot, at most one has not `lost`.
__device__ inline u32 lanes_with(u32 slot, bool has_lost) {
    u32 same = 1u << lane_id();
    u32 lost = __ballot_sync(kAllLanes, has_lost);
    if (__popc(lost) > kMaxLost) {
        return __match_any_sync(kAllLanes, slot);
    }
    while (lost != 0) {
        const u32 slot_of_one = __shfl_sync(kAllLanes, slot, __ffs(static_cast<int>(lost)) - 1);
        const u32 equal = __ballot_sync(kAllLanes, slot == slot_of_one);
        same = slot == slot_of_one ? equal : same;
        lost &= ~equal;
    }
    return same;
}

// Finds, for each group, the lanes whose slot is that of this lane. `first` is the first position
// of the groups.
__device__ inline void compare_slots(const u32 (&slots)[kGroups], u32 first, u32* claims,
                                     u32 (&same)[kGroups]) {
    bool has_lost[kGroups];
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group) {
        const u32 number = first + (group + 1) * kWarpSize;
        has_lost[group] = atomicMax(&claims[slots[group] % kNumClaims], number) >= number;
    }
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group) {
        same[group] = lanes_with(slots[group], has_lost[group]);
    }
}

// Takes the last positions before each group from the table, and puts those of the groups there.
// `first` is the first position of the groups.
template <typename Position>
__device__ inline void exchange(const u32 (&slots)[kGroups], const u32 (&same)[kGroups],
                                u32 num_slots, u32 first, Position* last,
                                Position (&before)[kGroups]) {
    const u32 lane = lane_id();
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group) {
        const u32 slot = slots[group];
        before[group] = slot < num_slots ? last[slot] : kNoLink<Position>;
        __syncwarp();
        if (slot < num_slots && same[group] >> lane == 1) {
            last[slot] = static_cast<Position>(first + group * kWarpSize + lane);
        }
        __syncwarp();
    }
}

template <typename Position>
__device__ inline void write_links(const u32 (&slots)[kGroups], const u32 (&same)[kGroups],
                                   u32 num_slots, u32 first, const Position (&before)[kGroups],
                                   Position* links) {
    const u32 lane = lane_id();
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group) {
        const u32 group_first = first + group * kWarpSize;
        const u32 below = same[group] & lanes_below(lane_id());
        if (slots[group] < num_slots) {
            links[group_first + lane] =
                below != 0
                    ? static_cast<Position>(group_first + 31 - __clz(static_cast<int>(below)))
                    : before[group];
        }
    }
}

template <typename Position>
__device__ inline void link_block(const ParseBlock& block, const HashTable& table, uint4* shared,
                                  Position* links) {
    const u32 num_slots = 1u << table.table_bits;
    const u32 num_vectors = num_slots * sizeof(Position) / sizeof(uint4);
    Position* const last = reinterpret_cast<Position*>(shared);
    const u32 warp = threadIdx.x / kWarpSize;
    u32* const claims = reinterpret_cast<u32*>(shared + num_vectors);
    for (u32 vector = threadIdx.x; vector < num_vectors; vector += kLinkThreads) {
        shared[vector] = {~0u, ~0u, ~0u, ~0u};  // kNoLink
    }
    for (u32 claim = threadIdx.x; claim < kLinkWarps * kNumClaims; claim += kLinkThreads) {
        claims[claim] = 0;
    }
    __syncthreads();
    u32 first = warp * kPositionsPerTurn;
    GroupWords words = load_groups(block, first);
    for (u32 round = 0; round < block.num_linked; round += kPositionsPerRound) {
        u32 slots[kGroups], same[kGroups];
        Position before[kGroups];
#pragma unroll
        for (u32 group = 0; group < kGroups; ++group) {
            slots[group] = slot_of(block, table, words.low[group], words.high[group],
                                   first + group * kWarpSize + lane_id());
        }
        words = load_groups(block, first + kPositionsPerRound);
        compare_slots(slots, first, claims + warp * kNumClaims, same);
        if (round != 0 || warp != 0) {
            meet_warp_at(barrier_before(warp));
        }
        exchange(slots, same, num_slots, first, last, before);
        if (warp != kLinkWarps - 1 || round + kPositionsPerRound < block.num_linked) {
            meet_warp_at(barrier_before((warp + 1) % kLinkWarps));
        }
        write_links(slots, same, num_slots, first, before, links);
        first += kPositionsPerRound;
    }
    if (table.part == 0 && threadIdx.x < block.size - block.num_linked) {
        links[block.num_linked + threadIdx.x] = kNoLink<Position>;
    }
}

template <typename Position>
__device__ inline void link_table(const u8* content, u64 content_size, u32 block_size,
                                  u32 num_tables, u32 num_short_tables, int table_bits,
                                  uint4* shared, Position* links, Position* short_links) {
    const u32 tables_per_block = num_tables + num_short_tables;
    const u32 index = blockIdx.x / tables_per_block;
    const u32 part = blockIdx.x % tables_per_block;
    const bool is_short = part >= num_tables;
    const ParseBlock block = block_of(index, content, content_size, block_size);
    const int hash_bits = is_short                        ? kShortHashBits
                          : block.size <= kMaxNarrowBlock ? kNarrowHashBits
                                                          : kWideHashBits;
    const HashTable table{is_short, hash_bits, table_bits, is_short ? part - num_tables : part};
    link_block(block, table, shared,
               (is_short ? short_links : links) + index * items_per_block(block_size));
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kLinkThreads)
    link_narrow(const unsigned char* content, unsigned long long content_size,
                unsigned int block_size, unsigned int num_tables, unsigned int num_short_tables,
                unsigned int table_bits, unsigned short* links, unsigned short* short_links) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    link_table(content, content_size, block_size, num_tables, num_short_tables,
               static_cast<int>(table_bits), shared_memory, links, short_links);
}

extern "C" __global__ void __launch_bounds__(gompfs::kLinkThreads)
    link_wide(const unsigned char* content, unsigned long long content_size,
              unsigned int block_size, unsigned int num_tables, unsigned int num_short_tables,
              unsigned int table_bits, unsigned int* links, unsigned int* short_links) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    link_table(content, content_size, block_size, num_tables, num_short_tables,
               static_cast<int>(table_bits), shared_memory, links, short_links);
}

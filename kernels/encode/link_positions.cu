// Links each position of a block to the previous position with the same hash, as
// native/codec/position_links.h does.
//
// A table has the last position with each hash. One warp takes the positions of a block in order,
// 32 at a time: a vote finds equal hashes among the 32, the table the last one before them. The
// warp issues its loads from and stores to the table in order, but need not wait for what it
// loaded, so several groups of 32 are under way at once. The table of a block is divided by the
// highest bits of the hash: so it fits into shared memory, and a warp for each part works on the
// block at the same time.
//
// Launch: one CTA of a warp per block and table: num_tables tables for the hashes of four bytes,
//   then those for the hashes of three bytes, if there are any.
// Mapping: lane i takes position i of each group of 32.
// Reads: the content of block i at content + i * block_size.
// Writes: links[i * items_per_block(block_size) + p] for each position p of block i, and
//   short_links.
// Shared memory: 2^table_bits positions.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 7 bytes after the content are readable. The tables of a hash have as many entries
//   together as it has values. link_narrow: block_size is at most kMaxNarrowBlock.
// Fails: never.
// Oracle: native/codec/position_links.h (tests/conformance/parse_cases.py).
// Caller: gompfs/gpu/parser.py.
#include "encode/parse_batch.cuh"

namespace gompfs {

// Groups of 32 positions that are under way at once.
constexpr u32 kGroupsAhead = 4;

// One table: a part of the values of a hash.
struct HashTable {
    bool is_short;
    int hash_bits;
    int table_bits;
    u32 part;  // the highest bits of the hashes in this table
};

// A position of this lane, and which other lanes have the same hash.
struct HashedPosition {
    u32 position;
    u32 slot;
    bool is_here;  // its hash is in this table
    u32 same;
};

__device__ inline HashedPosition hash_position(const ParseBlock& block, const HashTable& table,
                                               u32 position) {
    const bool exists = position < block.num_linked;
    const u32 word = exists ? Text(block.content).word(position) : 0;
    const u32 hash =
        table.is_short ? hash_three(word, table.hash_bits) : hash_four(word, table.hash_bits);
    const bool is_here = exists && hash >> table.table_bits == table.part;
    const u32 slot = hash & ((1u << table.table_bits) - 1);
    // Lanes without a position have numbers of their own.
    const u32 key = is_here ? slot : ~static_cast<u32>(lane_id());
    return {position, slot, is_here, __match_any_sync(kAllLanes, key)};
}

// Links 32 positions.
template <typename Position>
__device__ inline void link(const HashedPosition& at, Position* last, Position* links) {
    const int lane = lane_id();
    const u32 below = at.same & lanes_below(lane);
    const Position before = at.is_here ? last[at.slot] : kNoLink<Position>;
    __syncwarp();
    if (at.is_here && at.same >> lane == 1) {
        last[at.slot] = static_cast<Position>(at.position);
    }
    __syncwarp();
    if (at.is_here) {
        const u32 nearest = at.position - static_cast<u32>(lane) + 31 - __clz(below);
        links[at.position] = below != 0 ? static_cast<Position>(nearest) : before;
    }
}

template <typename Position>
__device__ inline void link_block(const ParseBlock& block, const HashTable& table, Position* last,
                                  Position* links) {
    const u32 num_vectors = (sizeof(Position) << table.table_bits) / sizeof(uint4);
    for (u32 vector = lane_id(); vector < num_vectors; vector += kWarpSize) {
        reinterpret_cast<uint4*>(last)[vector] = {~0u, ~0u, ~0u, ~0u};  // kNoLink
    }
    __syncwarp();
    for (u32 first = 0; first < block.num_linked; first += kGroupsAhead * kWarpSize) {
        HashedPosition positions[kGroupsAhead];
#pragma unroll
        for (u32 group = 0; group < kGroupsAhead; ++group) {
            positions[group] = hash_position(block, table, first + group * kWarpSize + lane_id());
        }
#pragma unroll
        for (u32 group = 0; group < kGroupsAhead; ++group) {
            link(positions[group], last, links);
        }
    }
    if (table.part == 0 && block.num_linked + lane_id() < block.size) {
        links[block.num_linked + lane_id()] = kNoLink<Position>;
    }
}

template <typename Position>
__device__ inline void link_table(const u8* content, u64 content_size, u32 block_size,
                                  u32 num_tables, u32 num_short_tables, int table_bits,
                                  Position* last, Position* links, Position* short_links) {
    const u32 tables_per_block = num_tables + num_short_tables;
    const u32 index = blockIdx.x / tables_per_block;
    const u32 part = blockIdx.x % tables_per_block;
    const bool is_short = part >= num_tables;
    const ParseBlock block = block_of(index, content, content_size, block_size);
    const int hash_bits = is_short                        ? kShortHashBits
                          : block.size <= kMaxNarrowBlock ? kNarrowHashBits
                                                          : kWideHashBits;
    const HashTable table{is_short, hash_bits, table_bits, is_short ? part - num_tables : part};
    link_block(block, table, last,
               (is_short ? short_links : links) + index * items_per_block(block_size));
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kWarpSize)
    link_narrow(const unsigned char* content, unsigned long long content_size,
                unsigned int block_size, unsigned int num_tables, unsigned int num_short_tables,
                unsigned int table_bits, unsigned short* links, unsigned short* short_links) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    link_table(content, content_size, block_size, num_tables, num_short_tables,
               static_cast<int>(table_bits), reinterpret_cast<u16*>(shared_memory), links,
               short_links);
}

extern "C" __global__ void __launch_bounds__(gompfs::kWarpSize)
    link_wide(const unsigned char* content, unsigned long long content_size,
              unsigned int block_size, unsigned int num_tables, unsigned int num_short_tables,
              unsigned int table_bits, unsigned int* links, unsigned int* short_links) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    link_table(content, content_size, block_size, num_tables, num_short_tables,
               static_cast<int>(table_bits), reinterpret_cast<u32*>(shared_memory), links,
               short_links);
}

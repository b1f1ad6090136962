// Codeword lengths of limited Huffman codes, with the result of native/codec/huffman.cpp. A warp
// builds a code.
//
// The symbols that occur are the leaves of a tree, sorted by (count, symbol). Lane 0 builds the
// ordinary Huffman tree with two queues: the leaves, and the inner nodes in the order in which they
// are made. If the tree is too deep, all lanes run package-merge (Larmore and Hirschberg 1990). A
// level of package-merge merges two sorted lists, the leaves and the pairs of items of the level
// before. An item's index in the merged list is its index in its own list plus the number of items
// of the other list that come before it, which a binary search finds.
#pragma once

#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kMaxLeaves = 256;
constexpr u32 kMaxMergeItems = 2 * kMaxLeaves - 2;
constexpr u32 kMaxLimit = 10;  // of codeword lengths
constexpr u32 kItemWords = kMaxMergeItems / 32 + 1;

// Shared memory of a warp that builds a code.
struct TreeScratch {
    u32 leaves[kMaxLeaves];  // counts, ascending
    u8 symbols[kMaxLeaves];  // of the leaves
    // The Huffman tree is no longer needed when package-merge begins.
    union {
        struct {
            u32 weights[kMaxLeaves];  // of inner nodes
            u8 parents[kMaxLeaves];   // of inner nodes
            u8 leaf_parents[kMaxLeaves];
            u8 depths[kMaxLeaves];  // of inner nodes
        } tree;
        struct {
            u32 items[kMaxMergeItems];
            u32 pairs[kMaxLeaves];
            u32 is_leaf[kMaxLimit][kItemWords];  // a bit for each item of each level
        } merge;
    };
};

// Sorts the symbols that occur by (count, symbol). Returns their number. Counts are below 2^24.
__device__ inline u32 sort_leaves(const u32* counts, u32 num_symbols, TreeScratch& scratch) {
    u32* const keys = scratch.merge.items;
    u32 num_leaves = 0;
    for (u32 first = 0; first < num_symbols; first += kWarpSize) {
        const u32 symbol = first + lane_id();
        const u32 count = symbol < num_symbols ? counts[symbol] : 0;
        const u32 all = __ballot_sync(kAllLanes, count != 0);
        if (count != 0) {
            keys[num_leaves + __popc(all & lanes_below(lane_id()))] = count << 8 | symbol;
        }
        num_leaves += __popc(all);
    }
    __syncwarp();
    for (u32 leaf = lane_id(); leaf < num_leaves; leaf += kWarpSize) {
        const u32 key = keys[leaf];
        u32 rank = 0;
        for (u32 other = 0; other < num_leaves; ++other) {
            rank += keys[other] < key;
        }
        scratch.leaves[rank] = key >> 8;
        scratch.symbols[rank] = static_cast<u8>(key);
    }
    __syncwarp();
    return num_leaves;
}

// Builds the Huffman tree of at least two leaves, and the depths of its inner nodes. One lane calls
// it.
__device__ inline void build_tree(u32 num_leaves, TreeScratch& scratch) {
    auto& tree = scratch.tree;
    u32 leaf = 0, inner = 0;
    for (u32 node = 0; node < num_leaves - 1; ++node) {
        u32 weight = 0;
        for (int child = 0; child < 2; ++child) {
            const bool takes_leaf =
                leaf < num_leaves && (inner >= node || scratch.leaves[leaf] <= tree.weights[inner]);
            if (takes_leaf) {
                weight += scratch.leaves[leaf];
                tree.leaf_parents[leaf++] = static_cast<u8>(node);
            } else {
                weight += tree.weights[inner];
                tree.parents[inner++] = static_cast<u8>(node);
            }
        }
        tree.weights[node] = weight;
    }
    tree.depths[num_leaves - 2] = 0;
    for (u32 node = num_leaves - 2; node-- > 0;) {
        tree.depths[node] = static_cast<u8>(tree.depths[tree.parents[node]] + 1);
    }
}

// The number of `sorted` numbers that are below `value`, or not above it if `or_equal`.
__device__ inline u32 count_before(const u32* sorted, u32 size, u32 value, bool or_equal) {
    u32 low = 0;
    while (size > 0) {
        const u32 half = size / 2;
        const u32 middle = sorted[low + half];
        const bool before = middle < value || (or_equal && middle == value);
        low += before ? half + 1 : 0;
        size = before ? size - half - 1 : half;
    }
    return low;
}

// Merges leaves and pairs to a level of package-merge, of which the first num_items items count.
__device__ inline void merge_level(u32 num_leaves, u32 num_pairs, u32 num_items, u32* is_leaf,
                                   TreeScratch& scratch) {
    auto& merge = scratch.merge;
    if (lane_id() < static_cast<int>(kItemWords)) {
        is_leaf[lane_id()] = 0;
    }
    __syncwarp();
    for (u32 leaf = lane_id(); leaf < num_leaves; leaf += kWarpSize) {
        const u32 count = scratch.leaves[leaf];
        const u32 index = leaf + count_before(merge.pairs, num_pairs, count, false);
        if (index < num_items) {
            merge.items[index] = count;
            atomicOr(&is_leaf[index / 32], 1u << index % 32);
        }
    }
    for (u32 pair = lane_id(); pair < num_pairs; pair += kWarpSize) {
        const u32 count = merge.pairs[pair];
        const u32 index = pair + count_before(scratch.leaves, num_leaves, count, true);
        if (index < num_items) {
            merge.items[index] = count;
        }
    }
    __syncwarp();
}

// The number of leaves among the first num_items items of a level.
__device__ inline u32 count_leaves(const u32* is_leaf, u32 num_items) {
    const u32 first = lane_id() * 32;
    u32 bits = first < num_items ? is_leaf[lane_id()] : 0;
    if (first < num_items && num_items - first < 32) {
        bits &= (1u << (num_items - first)) - 1;
    }
    return sum_of_warp(__popc(bits));
}

// Stores the lengths of the best code with codewords of at most max_bits bits (package-merge). The
// length of a leaf is the number of levels on which it counts.
__device__ inline void limit_lengths(u32 num_leaves, u32 max_bits, u8* lengths,
                                     TreeScratch& scratch) {
    auto& merge = scratch.merge;
    const u32 most_items = 2 * num_leaves - 2;
    u32 num_pairs = 0;
    for (u32 level = 0; level < max_bits; ++level) {
        const u32 num_items = min(num_leaves + num_pairs, most_items);
        merge_level(num_leaves, num_pairs, num_items, merge.is_leaf[level], scratch);
        num_pairs = num_items / 2;
        for (u32 pair = lane_id(); pair < num_pairs; pair += kWarpSize) {
            merge.pairs[pair] = merge.items[2 * pair] + merge.items[2 * pair + 1];
        }
        __syncwarp();
    }
    for (u32 leaf = lane_id(); leaf < num_leaves; leaf += kWarpSize) {
        lengths[scratch.symbols[leaf]] = 0;
    }
    u32 num_taken = most_items;
    for (u32 level = max_bits; level-- > 0;) {
        const u32 leaves_taken = count_leaves(merge.is_leaf[level], num_taken);
        for (u32 leaf = lane_id(); leaf < leaves_taken; leaf += kWarpSize) {
            ++lengths[scratch.symbols[leaf]];
        }
        num_taken = 2 * (num_taken - leaves_taken);
    }
}

// Stores a codeword length for each symbol, as limited_code_lengths in native/codec/huffman.cpp
// does. All lanes of a warp call it; counts and lengths are in shared memory. Not inlined: a kernel
// calls it for several codes.
[[gnu::noinline]] __device__ void limited_code_lengths(const u32* counts, u32 num_symbols,
                                                       u32 max_bits, u8* lengths,
                                                       TreeScratch& scratch) {
    const u32 num_leaves = sort_leaves(counts, num_symbols, scratch);
    for (u32 symbol = lane_id(); symbol < num_symbols; symbol += kWarpSize) {
        lengths[symbol] = counts[symbol] != 0;
    }
    __syncwarp();
    if (num_leaves <= 1) {
        return;
    }
    if (lane_id() == 0) {
        build_tree(num_leaves, scratch);
    }
    __syncwarp();
    const auto& tree = scratch.tree;
    const bool is_too_deep = tree.depths[tree.leaf_parents[0]] >= max_bits;
    __syncwarp();
    if (is_too_deep) {
        limit_lengths(num_leaves, max_bits, lengths, scratch);
    } else {
        for (u32 leaf = lane_id(); leaf < num_leaves; leaf += kWarpSize) {
            lengths[scratch.symbols[leaf]] =
                static_cast<u8>(tree.depths[tree.leaf_parents[leaf]] + 1);
        }
    }
    __syncwarp();
}

// A codeword, first bit lowest, and the number of its bits.
struct Codeword {
    u16 bits;
    u16 num_bits;
};

// Assigns canonical codewords: shorter ones first, those of equal length in the order of their
// symbols. All lanes of a warp call it. `next` has 32 words of shared memory.
__device__ inline void assign_codewords(const u8* lengths, u32 num_symbols, u32* next,
                                        Codeword* codewords) {
    const u32 lane = lane_id();
    next[lane] = 0;
    __syncwarp();
    for (u32 symbol = lane; symbol < num_symbols; symbol += kWarpSize) {
        if (lengths[symbol] != 0) {
            atomicAdd(&next[lengths[symbol]], 1u);
        }
    }
    __syncwarp();
    // Codewords of all lengths are compared as numbers of kMaxLimit bits, first bit highest.
    const u32 shift = kMaxLimit - min(lane, kMaxLimit);
    const u32 own = lane <= kMaxLimit ? next[lane] << shift : 0;
    const u32 first_codeword = (inclusive_sum(own, lane) - own) >> shift;
    __syncwarp();
    next[lane] = first_codeword;
    __syncwarp();
    for (u32 first = 0; first < num_symbols; first += kWarpSize) {
        const u32 symbol = first + lane;
        const u32 length = symbol < num_symbols ? lengths[symbol] : 0;
        const u32 same = __match_any_sync(kAllLanes, length);
        const u32 codeword = next[length] + __popc(same & lanes_below(lane));
        __syncwarp();
        if (symbol < num_symbols) {
            codewords[symbol] = {
                static_cast<u16>(length == 0 ? 0 : __brev(codeword) >> (32 - length)),
                static_cast<u16>(length)};
        }
        if (length != 0 && same >> lane == 1) {  // the last lane with this length
            next[length] = codeword + 1;
        }
        __syncwarp();
    }
}

}  // namespace gompfs

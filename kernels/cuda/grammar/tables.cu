// Traversal with local tables, over topological levels or in rounds with masks (G-TADOC, algorithms
// 1 and 2).
//
// In both directions a node, when it is its turn, passes on what it has to the nodes behind it: a
// file or rule its weights, by file, to the rules that it uses; or a rule the counts of its terms
// to what uses it. In rounds, a node's turn comes when all before it have had theirs: each of these
// tells it so, the last one sets its mask to the next round, and rounds go on while any mask was
// set. A long node is cut into pieces, and each piece is a thread's.
//
// Launch: CTAs of any size, any number of them. No shared memory.
#include "grammar/tables.cuh"

namespace gompfs {

// Who passes on to whom, as rounds need it.
struct RoundGraph {
    const u64* starts;  // CSR, by node
    const u32* targets;
    const u64* piece_starts;  // by node
    const u32* piece_nodes;   // by piece
    u64 num_pieces;
    u64 piece_size;
    u32* waits;  // by node: how many edges it has not heard of yet
    u32* masks;  // by node: the round of its turn, 0 where that is not known
    u32 round;
    u32* has_next;  // whether any node has its turn in the next round
};

// Calls pass_on(node, target) for the edges of all nodes whose turn it is.
// Mapping: a thread for each piece.
template <class PassOn>
__device__ inline void for_each_edge_of_round(const RoundGraph& graph, PassOn&& pass_on) {
    for_each_index(0, graph.num_pieces, [&](u64 piece) {
        const u32 node = graph.piece_nodes[piece];
        if (graph.masks[node] != graph.round) {
            return;
        }
        const u64 begin =
            graph.starts[node] + (piece - graph.piece_starts[node]) * graph.piece_size;
        const u64 end = min(begin + graph.piece_size, graph.starts[node + u64{1}]);
        for (u64 edge = begin; edge < end; ++edge) {
            const u32 target = graph.targets[edge];
            pass_on(node, target);
            __threadfence();
            if (atomicAdd(&graph.waits[target], 0xffffffffu) == 1) {
                graph.masks[target] = graph.round + 1;
                *graph.has_next = 1;
            }
        }
    });
}

// Adds the tables of from[first] to from[last - 1] to those of to[...]. Slot i of the table of
// from[edge] has the number slot_starts[edge] + i.
// Mapping: a thread for each slot, which looks for its edge among the starts.
__device__ inline void add_tables(const Tables& tables, const Tables& targets, const u32* from,
                                  const u32* to, const u64* slot_starts, u64 first, u64 last) {
    for_each_index(slot_starts[first], slot_starts[last], [&](u64 index) {
        const u64 edge = first + find_last(slot_starts + first, last - first, index);
        Table(tables, from[edge]).add_slot_to(Table(targets, to[edge]), index - slot_starts[edge]);
    });
}

}  // namespace gompfs

using gompfs::u32;
using gompfs::u64;

// One round of numbers: values[target] += min(values[node], limit).
extern "C" __global__ void pass_values(const u64* starts, const u32* targets,
                                       const u64* piece_starts, const u32* piece_nodes,
                                       u64 num_pieces, u64 piece_size, u32* waits, u32* masks,
                                       u32 round, u32* has_next, u64* values, u64 limit) {
    const gompfs::RoundGraph graph{starts,     targets, piece_starts, piece_nodes, num_pieces,
                                   piece_size, waits,   masks,        round,       has_next};
    gompfs::for_each_edge_of_round(
        graph, [&](u32 node, u32 target) { atomicAdd(&values[target], min(values[node], limit)); });
}

// One round of tables: the table of the node is added to that of the target.
extern "C" __global__ void pass_tables(const u64* starts, const u32* targets,
                                       const u64* piece_starts, const u32* piece_nodes,
                                       u64 num_pieces, u64 piece_size, u32* waits, u32* masks,
                                       u32 round, u32* has_next, const u64* table_starts,
                                       u32* locks, u32* entries, u32* keys, u64* values, u32* nexts,
                                       u32* sizes, u32* overflow) {
    const gompfs::RoundGraph graph{starts,     targets, piece_starts, piece_nodes, num_pieces,
                                   piece_size, waits,   masks,        round,       has_next};
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    gompfs::for_each_edge_of_round(graph, [&](u32 node, u32 target) {
        gompfs::Table(tables, node).add_all_to(gompfs::Table(tables, target));
    });
}

// Adds 1 to the count of items[i] in the table of owners[i].
// Mapping: a thread for each item.
extern "C" __global__ void add_items(const u32* owners, const u32* items, u64 num_items,
                                     const u64* table_starts, u32* locks, u32* entries, u32* keys,
                                     u64* values, u32* nexts, u32* sizes, u32* overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    gompfs::for_each_index(0, num_items, [&](u64 index) {
        gompfs::Table(tables, owners[index]).add(items[index], 1);
    });
}

// Adds the table of from[i] to that of to[i], which may be one of others (the second set of
// buffers), for the edges from `first` up to `last`; slot_starts[i] is the sum of the sizes that
// the tables of the edges before i have room for.
// Mapping: a thread for each slot of the tables.
extern "C" __global__ void add_tables(const u32* from, const u32* to, const u64* slot_starts,
                                      u64 first, u64 last, const u64* table_starts, u32* locks,
                                      u32* entries, u32* keys, u64* values, u32* nexts, u32* sizes,
                                      u32* overflow, const u64* target_starts, u32* target_locks,
                                      u32* target_entries, u32* target_keys, u64* target_values,
                                      u32* target_nexts, u32* target_sizes, u32* target_overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    const gompfs::Tables targets{target_starts, target_locks, target_entries, target_keys,
                                 target_values, target_nexts, target_sizes,   target_overflow};
    gompfs::add_tables(tables, targets, from, to, slot_starts, first, last);
}

// The same inside one set of tables for levels in a row, each of which needs the one before: level
// i has the edges from level_starts[i] up to level_starts[i + 1].
// Launch: one CTA, so that levels of few slots cost a barrier and no launch.
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

// Traversal of a forest in rounds with masks (G-TADOC, Zhang et al., ICDE 2021, algorithms 1 and
// 2).
//
// gompfs traverses by levels (kernels/statistics/levels.cu and tables.cu); these kernels are the
// design of the paper, for comparison. A node passes its content on when all nodes before it have
// done so: each of those nodes decrements the node's counter (waits), and the last one sets the
// node's mask to the next round. Rounds go on as long as a mask was set. A node with many edges is
// cut into pieces of piece_size edges, one thread per piece. Results are collected in tables.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per piece (rounds) or per slot of a table (collect_tables).
// Reads: the graph, the tables or values of nodes whose turn it is.
// Writes: tables or values of the target nodes; waits, masks and has_next.
// Shared memory: none.
// Requires: an acyclic graph; tables at least as large as the first pass says.
// Fails: sets *overflow if a table is full; the item is dropped and the caller must check the flag.
// Oracle: native/statistics/postings.cpp (tests/statistics/test_mask_rounds.py).
// Caller: tools/experiments/mask_rounds.py.
#include "statistics/tables.cuh"

namespace gompfs {

// The edges along which nodes pass on, and the state of the rounds.
struct RoundGraph {
    const u64* starts;  // CSR, by node
    const u32* targets;
    const u64* piece_starts;  // by node: index of its first piece
    const u32* piece_nodes;   // by piece
    u64 num_pieces;
    u64 piece_size;
    u32* waits;  // by node: number of incoming edges that have not passed on yet
    u32* masks;  // by node: the round in which it passes on; 0 if not known yet
    u32 round;
    u32* has_next;  // set if any node passes on in the next round
};

// Calls pass_on(node, target) for the edges of all nodes that pass on in this round.
// Mapping: a thread per piece.
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

}  // namespace gompfs

using gompfs::u32;
using gompfs::u64;

// One round for numbers: values[target] += min(values[node], limit).
extern "C" __global__ void pass_values(const u64* starts, const u32* targets,
                                       const u64* piece_starts, const u32* piece_nodes,
                                       u64 num_pieces, u64 piece_size, u32* waits, u32* masks,
                                       u32 round, u32* has_next, u64* values, u64 limit) {
    const gompfs::RoundGraph graph{starts,     targets, piece_starts, piece_nodes, num_pieces,
                                   piece_size, waits,   masks,        round,       has_next};
    gompfs::for_each_edge_of_round(
        graph, [&](u32 node, u32 target) { atomicAdd(&values[target], min(values[node], limit)); });
}

// One round for tables: adds the table of the node to that of the target.
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
        const gompfs::Table table(tables, node);
        for (u64 slot = 0; slot < table.capacity; ++slot) {
            table.add_slot_to(gompfs::Table(tables, target), slot);
        }
    });
}

// Adds the table of from[i] to that of to[i] in another set of tables (the second set of buffers).
// slot_starts[i] is the sum of the capacities of the tables of the edges before i.
// Mapping: a thread per slot of the source tables.
extern "C" __global__ void collect_tables(const u32* from, const u32* to, const u64* slot_starts,
                                          u64 num_edges, const u64* table_starts, u32* locks,
                                          u32* entries, u32* keys, u64* values, u32* nexts,
                                          u32* sizes, u32* overflow, const u64* target_starts,
                                          u32* target_locks, u32* target_entries, u32* target_keys,
                                          u64* target_values, u32* target_nexts, u32* target_sizes,
                                          u32* target_overflow) {
    const gompfs::Tables tables{table_starts, locks, entries, keys, values, nexts, sizes, overflow};
    const gompfs::Tables targets{target_starts, target_locks, target_entries, target_keys,
                                 target_values, target_nexts, target_sizes,   target_overflow};
    gompfs::add_tables(tables, targets, from, to, slot_starts, 0, num_edges);
}

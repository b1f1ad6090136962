// The match strategies of the Gompresso paper, for comparison with the pieces of row.cuh (Sitaridi
// et al., ICPP 2016, section 4).
//
// The paper gives each lane a sequence; the lane copies the sequence's literals and then its match,
// several bytes at a time. The strategies differ in the round in which a lane may copy its match:
// one lane per round (SC), every lane whose source is final (MRR), or a whole group of lanes at
// once, because the encoder made no match depend on another match of its group (DE). Each strategy
// has two variants: one copies up to eight bytes per step, the other one byte per step. The kernels
// also count rows, rounds, and the bytes copied in each round, at the cost of a few instructions
// per row.
#pragma once

#include "codec/batch.cuh"
#include "codec/row.cuh"
#include "match_copy.cuh"

namespace gompfs {

enum class MatchStrategy {
    sequential_copying,      // SC: one lane after another
    multi_round_resolution,  // MRR: in each round, all lanes whose source is final (the paper's
                             // Fig. 5)
    dependency_elimination,  // DE: a group of lanes at once, as the payload's flag allows
};

// No row needs more rounds: each round copies the match of at least one lane.
constexpr u32 kMaxRounds = kWarpSize;

// The counters of a launch: number of rows, number of rounds, then for each round of a row the
// number of bytes copied by matches.
constexpr u32 kNumCounters = 2 + kMaxRounds;

// The shared memory of one warp, in addition to that of the codec.
struct StrategyShared {
    u32 bytes[kMaxRounds];
};
constexpr unsigned kStrategyBytesPerWarp = sizeof(StrategyShared);

// The same in all lanes, except the content of `bytes`.
struct RoundCounts {
    u32 rows = 0;
    u32 rounds = 0;
    u32* bytes;  // per round, in shared memory
};

// Copies a row's literals to their positions in the output. 32 literals are read before any of them
// is written; literals that are not yet read lie after all output written so far.
__device__ inline void place_literals(const BlockOutput& out, u32 before, u32 literals_through,
                                      u32 literals_start, u32 num_literals) {
    const u32 lane = lane_id();
    for (u32 first = 0; first < num_literals; first += kWarpSize) {
        const u32 index = min(first + lane, num_literals - 1);
        const int owner = count_up_to(literals_through, index);
        const u32 owner_before = __shfl_sync(kAllLanes, before, owner);
        const u8 literal = out.bytes[literals_start + index];
        __syncwarp();
        out.bytes[out.position + (owner_before >> 16) + index - (owner_before & 0xffff)] = literal;
        __syncwarp();
    }
}

// Copies the matches of a row. group_size is used by dependency elimination only. Returns the
// number of rounds and sets own_round to the round in which this lane copied.
template <MatchStrategy kStrategy, class Copy>
__device__ inline u32 copy_matches(const BlockOutput& out, const LaneMatch& match, u32 group_size,
                                   u32& own_round) {
    const u32 lane = lane_id();
    u32 rounds = 0;
    own_round = 0;
    if (kStrategy == MatchStrategy::multi_round_resolution) {
        bool pending = match.length != 0;
        for (u32 waiting = __ballot_sync(kAllLanes, pending); waiting != 0; ++rounds) {
            // All output below the first pending match is final.
            const u32 high_water_mark = __shfl_sync(kAllLanes, match.position, __ffs(waiting) - 1);
            if (pending && source_end(match) <= high_water_mark) {
                Copy::copy(out.bytes, match);
                pending = false;
                own_round = rounds;
            }
            __syncwarp();
            waiting = __ballot_sync(kAllLanes, pending);
        }
        return rounds;
    }
    const u32 step = kStrategy == MatchStrategy::sequential_copying ? 1 : group_size;
    for (u32 first = 0; first < kWarpSize; first += step, ++rounds) {
        if (lane >= first && lane < first + step) {
            Copy::copy(out.bytes, match);
            own_round = rounds;
        }
        __syncwarp();
    }
    return rounds;
}

// The offsets of this lane's sequence of a row. The same in all lanes: the row's length and number
// of literals.
struct RowLayout {
    LaneMatch match;
    u32 before;           // length, in the upper half, and literals of the lower lanes
    u32 through;          // the same, including this lane
    u32 literals_before;  // literals of the lower lanes
    u32 length;
    u32 num_literals;
};

// Returns false in all lanes if the row is not valid.
__device__ inline bool lay_out(const BlockOutput& out, const LaneSequence& sequence,
                               RowLayout& row) {
    const u32 own_length = sequence.literal_length + sequence.match_length;
    const u32 own = own_length << 16 | sequence.literal_length;
    row.through = inclusive_sum(own, lane_id());
    row.before = row.through - own;
    row.literals_before = row.before & 0xffff;
    const u32 total = __shfl_sync(kAllLanes, row.through, kWarpSize - 1);
    row.length = total >> 16;
    row.num_literals = total & 0xffff;
    row.match = {out.position + (row.through >> 16) - sequence.match_length, sequence.match_length,
                 sequence.match_offset};
    const bool bad = row.match.length != 0 && row.match.offset - 1 >= row.match.position;
    return !__any_sync(kAllLanes, bad) && row.length <= out.size - out.position &&
           row.num_literals <= out.num_literals;
}

// Writes the bytes of a block from its rows by one of these strategies.
template <MatchStrategy kStrategy, class Copy>
struct StrategyRows {
    u32 group_size;
    RoundCounts& counts;

    __device__ void begin() {}

    // As PieceRows::write.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        RowLayout row;
        if (!lay_out(out, sequence, row)) {
            return false;
        }
        place_literals(out, row.before, row.through & 0xffff, out.size - out.num_literals,
                       row.num_literals);
        u32 own_round;
        counts.rounds += copy_matches<kStrategy, Copy>(out, row.match, group_size, own_round);
        ++counts.rows;
        if (row.match.length != 0) {
            atomicAdd(&counts.bytes[own_round], row.match.length);
        }
        out.position += row.length;
        out.num_literals -= row.num_literals;
        return true;
    }
};

// Decodes all blocks by one strategy. decode_block(task, rows) is the function of the codec.
// `counters` has kNumCounters numbers, to which each warp adds its own. The caller may request
// dependency elimination only if all payloads have its flag.
template <MatchStrategy kStrategy, class Copy, class DecodeBlock>
__device__ inline void decode_by(const GpuBatch& batch, StrategyShared& shared, u64* counters,
                                 const DecodeBlock& decode_block) {
    const int lane = lane_id();
    RoundCounts counts;
    counts.bytes = shared.bytes;
    counts.bytes[lane] = 0;
    __syncwarp();
    for_each_block(batch, [&](const BlockTask& task) {
        // Byte 1 of both codecs' headers is the group size; a wrong one is refused before it is
        // used.
        const u32 group_size = 1u << (task.payload_size > 1 ? task.payload[1] % 8 : 0);
        StrategyRows<kStrategy, Copy> rows{group_size, counts};
        return decode_block(task, rows);
    });
    __syncwarp();
    atomicAdd(&counters[2 + lane], static_cast<u64>(counts.bytes[lane]));
    if (lane == 0) {
        atomicAdd(&counters[0], static_cast<u64>(counts.rows));
        atomicAdd(&counters[1], static_cast<u64>(counts.rounds));
    }
}

}  // namespace gompfs

// The first parameters of a kernel that decodes a batch of blocks, and the batch that they
// describe.
#define GOMPFS_BATCH_PARAMETERS                                                     \
    const unsigned char *compressed, const unsigned long long *payload_offsets,     \
        const unsigned int *payload_sizes, unsigned char *output,                   \
        const unsigned long long *output_offsets, const unsigned int *output_sizes, \
        unsigned char *statuses, unsigned int *next_block, unsigned int num_blocks
#define GOMPFS_BATCH                                                                      \
    gompfs::GpuBatch {                                                                    \
        compressed, payload_offsets, payload_sizes, output, output_offsets, output_sizes, \
            statuses, next_block, num_blocks                                              \
    }

// Defines a kernel with the arguments of a decoding kernel, and counters. BlockDecoder is
// constructed from the shared memory after the StrategyShared of all warps.
#define GOMPFS_STRATEGY_KERNEL(name, BlockDecoder, strategy, Copy)                          \
    extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta)                    \
        name(GOMPFS_BATCH_PARAMETERS, unsigned long long* counters) {                       \
        extern __shared__ uint4 shared_memory[];                                            \
        gompfs::StrategyShared* const shared =                                              \
            reinterpret_cast<gompfs::StrategyShared*>(shared_memory);                       \
        const gompfs::BlockDecoder decode_block(shared + blockDim.x / gompfs::kWarpSize);   \
        gompfs::decode_by<gompfs::MatchStrategy::strategy, gompfs::Copy>(                   \
            GOMPFS_BATCH, shared[threadIdx.x / gompfs::kWarpSize], counters, decode_block); \
    }

// Defines the kernels of all strategies of the paper, with both ways to copy.
#define GOMPFS_STRATEGY_KERNELS(prefix, BlockDecoder)                                          \
    GOMPFS_STRATEGY_KERNEL(prefix##_sc, BlockDecoder, sequential_copying, WordCopy)            \
    GOMPFS_STRATEGY_KERNEL(prefix##_sc_bytes, BlockDecoder, sequential_copying, ByteCopy)      \
    GOMPFS_STRATEGY_KERNEL(prefix##_mrr, BlockDecoder, multi_round_resolution, WordCopy)       \
    GOMPFS_STRATEGY_KERNEL(prefix##_mrr_bytes, BlockDecoder, multi_round_resolution, ByteCopy) \
    GOMPFS_STRATEGY_KERNEL(prefix##_de, BlockDecoder, dependency_elimination, WordCopy)        \
    GOMPFS_STRATEGY_KERNEL(prefix##_de_bytes, BlockDecoder, dependency_elimination, ByteCopy)

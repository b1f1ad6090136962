// Pointer jumping, for comparison with the strategies of the Gompresso paper (the decoder of
// K. Wesley, "Massively Parallel LZ77 Compression and Decompression on the GPU", Texas State
// University, 2022).
//
// Each byte of a block has a parent: the byte that its match copies, or, for a literal, one of 256
// roots, which stand for the values of a byte. No byte is copied before all sequences are read.
// Then every byte takes the parent of its parent, again and again, until all parents are roots: a
// byte at depth d of a chain of matches needs log2(d) rounds. Order does not matter, as a parent
// that another lane has just replaced only shortens the way.
//
// Her kernel has a CTA for each block; here a warp has one, as in the other strategies.
#pragma once

#include "strategies.cuh"

namespace gompfs {

// The first root; the value is in the lowest byte.
constexpr u32 kFirstRoot = 0x80000000;

// Collects the parents of a block from its rows.
struct ParentRows {
    u32* parents;  // one per byte of the block

    __device__ void begin() {}

    // As PieceRows::write, but writes no output.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        RowLayout row;
        if (!lay_out(out, sequence, row)) {
            return false;
        }
        const u32 literals_start = out.size - out.num_literals;
        const u32 first_literal = row.match.position - sequence.literal_length;
        for (u32 done = 0; done < sequence.literal_length; ++done) {
            parents[first_literal + done] =
                kFirstRoot | out.bytes[literals_start + row.literals_before + done];
        }
        for (u32 done = 0; done < row.match.length; ++done) {
            const u32 position = row.match.position + done;
            parents[position] = position - row.match.offset;
        }
        out.position += row.length;
        out.num_literals -= row.num_literals;
        return true;
    }
};

// Replaces all parents by roots. Returns the number of rounds.
__device__ inline u32 jump_to_roots(u32* parents, u32 size) {
    u32 num_rounds = 0;
    for (bool pending = true; __any_sync(kAllLanes, pending); ++num_rounds) {
        pending = false;
        __syncwarp();
        for (u32 index = lane_id(); index < size; index += kWarpSize) {
            const u32 parent = parents[index];
            if (parent < kFirstRoot) {
                const u32 next = parents[parent];
                parents[index] = next;
                pending |= next < kFirstRoot;
            }
        }
        __syncwarp();
    }
    return num_rounds;
}

// Decodes all blocks by pointer jumping. `parents` has a word for each byte of the batch's output.
// Adds the number of blocks and of rounds to the first two counters.
template <class DecodeBlock>
__device__ inline void decode_by_jumping(const GpuBatch& batch, u64* counters, u32* parents,
                                         const DecodeBlock& decode_block) {
    u32 num_blocks = 0;
    u32 num_rounds = 0;
    for_each_block(batch, [&](const BlockTask& task) {
        ParentRows rows{parents + (task.output - batch.output)};
        const bool valid = decode_block(task, rows);
        __syncwarp();
        if (valid) {
            num_rounds += jump_to_roots(rows.parents, task.output_size);
            for (u32 index = lane_id(); index < task.output_size; index += kWarpSize) {
                task.output[index] = static_cast<u8>(rows.parents[index]);
            }
        }
        ++num_blocks;
        return valid;
    });
    if (lane_id() == 0) {
        atomicAdd(&counters[0], static_cast<u64>(num_blocks));
        atomicAdd(&counters[1], static_cast<u64>(num_rounds));
    }
}

}  // namespace gompfs

// Defines a kernel as GOMPFS_STRATEGY_KERNEL does, with the parents as another argument.
#define GOMPFS_JUMPING_KERNEL(name, BlockDecoder)                                            \
    extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta)                     \
        name(GOMPFS_BATCH_PARAMETERS, unsigned long long* counters, unsigned int* parents) { \
        extern __shared__ uint4 shared_memory[];                                             \
        gompfs::StrategyShared* const shared =                                               \
            reinterpret_cast<gompfs::StrategyShared*>(shared_memory);                        \
        const gompfs::BlockDecoder decode_block(shared + blockDim.x / gompfs::kWarpSize);    \
        gompfs::decode_by_jumping(GOMPFS_BATCH, counters, parents, decode_block);            \
    }

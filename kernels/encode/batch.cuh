// The blocks that one launch encodes, and how the warps of a CTA share a block.
//
// Each block has a CTA of kEncodeWarps warps. Item i of a block (a sequence or a literal) belongs
// to sub-block i % 32, so a row of 32 items has one item for each lane. Warp w takes the w-th of
// kEncodeWarps contiguous ranges of rows. So lane i of a warp writes a contiguous range of the bits
// of sub-block i, and prefix sums over the warps tell where it begins.
#pragma once

#include "shared/packed_sequence.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kEncodeWarps = 4;
constexpr u32 kEncodeThreads = kEncodeWarps * kWarpSize;
// Registers are limited so that this many CTAs can share a multiprocessor.
constexpr int kEncodeCtas = 8;

// The result for a block: it was encoded, or is stored because no payload would be smaller; or its
// sequences do not reproduce its content.
constexpr u8 kEncodeOk = 0;
constexpr u8 kEncodeFailed = 1;

// The arguments of an encoding kernel. Block i has the content at i * block_size, the sequences at
// i * max_sequences, the payload at i * stride and its literals at i * block_size. block_size and
// stride are multiples of 16.
struct EncodeBatch {
    const u8* content;
    u64 content_size;
    const u64* sequences;  // see shared/packed_sequence.h
    const u32* num_sequences;
    u8* payloads;
    u32* payload_sizes;  // 0 for a block that is stored, or failed
    u8* statuses;
    u8* literals;  // working memory of gompresso-bit
    u32 block_size;
    u32 max_sequences;
    u32 stride;
    u32 flags;  // of the payloads; the second byte is group_size_log2
};

// One block of a batch. The pointers are those of the batch, moved to the block.
struct EncodeTask {
    u32 index;
    const u8* content;
    u32 size;
    const u64* sequences;
    u32 num_sequences;
    u8* payload;
    u8* literals;
};

__device__ inline EncodeTask task_of_cta(const EncodeBatch& batch) {
    const u64 index = blockIdx.x;
    const u64 start = index * batch.block_size;
    const u64 left = batch.content_size - start;
    return {blockIdx.x,
            batch.content + start,
            left < batch.block_size ? static_cast<u32>(left) : batch.block_size,
            batch.sequences + index * batch.max_sequences,
            batch.num_sequences[index],
            batch.payloads + index * batch.stride,
            batch.literals + start};
}

// Stores the size and the status of a block. One thread calls it.
__device__ inline void finish_block(const EncodeBatch& batch, u32 index, u32 size, u8 status) {
    batch.payload_sizes[index] = size;
    batch.statuses[index] = status;
}

__device__ inline u32 warp_id() { return threadIdx.x / kWarpSize; }

// The items of this warp.
struct ItemRange {
    u32 first, end;
};

__device__ inline ItemRange range_of_warp(u32 num_items) {
    const u32 num_rows = (num_items + kWarpSize - 1) / kWarpSize;
    const u32 per_warp = (num_rows + kEncodeWarps - 1) / kEncodeWarps * kWarpSize;
    return {min(warp_id() * per_warp, num_items), min((warp_id() + 1) * per_warp, num_items)};
}

// Calls take(item, exists) for each row of a range, in all lanes. `item` is items[i] for the item i
// of the lane, or 0 if the last row has none for this lane. The loads of several rows are in flight
// at once.
template <class Item, class Take>
__device__ inline void for_each_row(const Item* items, ItemRange range, Take&& take) {
    constexpr u32 kRowsAtOnce = 4;
    for (u32 first = range.first; first < range.end; first += kRowsAtOnce * kWarpSize) {
        Item loaded[kRowsAtOnce];
#pragma unroll
        for (u32 row = 0; row < kRowsAtOnce; ++row) {
            const u32 index = first + row * kWarpSize + lane_id();
            loaded[row] = index < range.end ? items[index] : 0;
        }
#pragma unroll
        for (u32 row = 0; row < kRowsAtOnce; ++row) {
            if (first + row * kWarpSize < range.end) {
                take(loaded[row], first + row * kWarpSize + lane_id() < range.end);
            }
        }
    }
}

// The sum of a value over all lanes of the warps before this one, and over all warps.
struct WarpSums {
    u32 before;
    u32 all;
};

// All threads of the CTA must call it. `scratch` has kEncodeWarps words of shared memory.
__device__ inline WarpSums sum_over_warps(u32 value, u32* scratch) {
    const u32 sum = sum_of_warp(value);
    __syncthreads();  // an earlier call has been read
    if (lane_id() == 0) {
        scratch[warp_id()] = sum;
    }
    __syncthreads();
    WarpSums sums = {0, 0};
#pragma unroll
    for (u32 warp = 0; warp < kEncodeWarps; ++warp) {
        sums.before += warp < warp_id() ? scratch[warp] : 0;
        sums.all += scratch[warp];
    }
    return sums;
}

// The offsets at which the sequences of this warp begin: in the content, and in the literals of the
// block.
struct WarpStart {
    u32 position;
    u32 literal;
    u32 num_literals;  // of the block
    bool is_sound;     // whether the sequences have exactly the bytes of the content
};

__device__ inline WarpStart find_start(const EncodeTask& task, u32* scratch) {
    u32 literals = 0, bytes = 0;
    for_each_row(task.sequences, range_of_warp(task.num_sequences), [&](u64 packed, bool) {
        const UnpackedSequence sequence = unpack_sequence(packed);
        literals += sequence.literal_length;
        bytes += sequence.literal_length + sequence.match_length;
    });
    const WarpSums of_literals = sum_over_warps(literals, scratch);
    const WarpSums of_bytes = sum_over_warps(bytes, scratch);
    return {of_bytes.before, of_literals.before, of_literals.all, of_bytes.all == task.size};
}

// Calls take(index, byte) for each literal of a row of sequences; `index` counts from the start of
// the block. Lane i takes every 32nd literal of the row, whatever sequences they belong to. Moves
// `at` to the next row.
template <class Take>
__device__ inline void for_each_literal(const u8* content, const UnpackedSequence& sequence,
                                        WarpStart& at, Take&& take) {
    const u32 lane = lane_id();
    const u32 length = sequence.literal_length + sequence.match_length;
    const u32 through = inclusive_sum(length << 16 | sequence.literal_length, lane);
    const u32 literals = through & 0xffff;
    const u32 start = at.position + (through >> 16) - length;
    const u32 to_source = start - (literals - sequence.literal_length);
    const u32 all = __shfl_sync(kAllLanes, through, kWarpSize - 1);
    const u32 num_literals = all & 0xffff;
    for (u32 first = 0; first < num_literals; first += kWarpSize) {
        const u32 literal = min(first + lane, num_literals - 1);
        const u32 source =
            literal + __shfl_sync(kAllLanes, to_source, count_up_to(literals, literal));
        if (first + lane < num_literals) {
            take(at.literal + literal, content[source]);
        }
    }
    at.position += all >> 16;
    at.literal += num_literals;
}

}  // namespace gompfs

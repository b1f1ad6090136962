// Multi-round resolution with a kernel for each round, the variant that the Gompresso paper tried
// (Sitaridi et al., ICPP 2016): matches that cannot be copied yet wait in device memory.
//
// The first kernel decodes a block, writes its literals and lists its matches. Each further kernel
// (resolve_round in match_rounds.cu) is one round: it copies each listed match whose source
// overlaps no other listed match, and lists the remaining matches for the next round. So a batch
// takes as many rounds as its longest chain of dependent matches, and all blocks wait for that
// chain.
#pragma once

#include "strategies.cuh"

namespace gompfs {

// A listed match: the offset in the lowest 20 bits, then the length (24 bits) and the position.
constexpr int kListedLengthShift = 20;
constexpr int kListedPositionShift = 44;
static_assert(kMaxBlockSize <= 1u << kListedLengthShift);

__device__ inline u64 list_match(const LaneMatch& match) {
    return match.offset | static_cast<u64>(match.length) << kListedLengthShift |
           static_cast<u64>(match.position) << kListedPositionShift;
}

__device__ inline LaneMatch listed_match(u64 listed) {
    constexpr u32 kLengthMask = (1u << (kListedPositionShift - kListedLengthShift)) - 1;
    return {static_cast<u32>(listed >> kListedPositionShift),
            static_cast<u32>(listed >> kListedLengthShift) & kLengthMask,
            static_cast<u32>(listed) & ((1u << kListedLengthShift) - 1)};
}

// The list of a block. A match has two bytes or more, and takes 8 bytes in a list.
__device__ inline u64* list_of(u64* lists, u64 output_offset) { return lists + output_offset / 2; }

// Appends the matches of the lanes for which `is_listed` is true, in the order of the lanes.
__device__ inline void append_matches(u64* list, u32& count, u64 listed, bool is_listed) {
    const u32 all = __ballot_sync(kAllLanes, is_listed);
    if (is_listed) {
        list[count + __popc(all & lanes_below(lane_id()))] = listed;
    }
    count += __popc(all);
}

// Writes the literals of a block from its rows, and lists its matches.
struct ListedRows {
    u64* list;
    u32& count;

    __device__ void begin() {}

    // As PieceRows::write.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        RowLayout row;
        if (!lay_out(out, sequence, row)) {
            return false;
        }
        place_literals(out, row.before, row.through & 0xffff, out.size - out.num_literals,
                       row.num_literals);
        append_matches(list, count, list_match(row.match), row.match.length != 0);
        out.position += row.length;
        out.num_literals -= row.num_literals;
        return true;
    }
};

// Decodes all blocks but for their matches. Writes the number of matches of each block.
template <class DecodeBlock>
__device__ inline void decode_to_lists(const GpuBatch& batch, u64* lists, u32* num_listed,
                                       const DecodeBlock& decode_block) {
    for_each_block(batch, [&](const BlockTask& task) {
        u32 count = 0;
        ListedRows rows{list_of(lists, task.output - batch.output), count};
        const bool valid = decode_block(task, rows);
        if (lane_id() == 0) {
            num_listed[task.index] = valid ? count : 0;
        }
        return valid;
    });
}

// Returns whether the source of a match overlaps none of `count` matches, which are sorted by
// position.
__device__ inline bool is_source_final(const LaneMatch& match, const u64* list, u32 count) {
    const u32 end = source_end(match);
    u32 low = 0;  // number of matches that begin before the source ends
    for (u32 high = count; low < high;) {
        const u32 middle = (low + high) / 2;
        const bool begins_before = listed_match(list[middle]).position < end;
        low = begins_before ? middle + 1 : low;
        high = begins_before ? high : middle;
    }
    if (low == 0) {
        return true;
    }
    const LaneMatch last = listed_match(list[low - 1]);
    return last.position + last.length <= match.position - match.offset;
}

// Copies the matches of a block that can be copied, and lists the others. Returns their number.
__device__ inline u32 resolve_matches(u8* output, const u64* list, u32 count, u64* others) {
    u32 num_others = 0;
    for (u32 first = 0; first < count; first += kWarpSize) {
        const u32 index = first + lane_id();
        const u64 listed = list[min(index, count - 1)];
        const LaneMatch match = listed_match(listed);
        const bool is_final = is_source_final(match, list, count);
        if (index < count && is_final) {
            WordCopy::copy(output, match);
        }
        append_matches(others, num_others, listed, index < count && !is_final);
    }
    return num_others;
}

}  // namespace gompfs

// Defines a kernel with the arguments of a decoding kernel, the lists, and a number for each block.
#define GOMPFS_LISTING_KERNEL(name, BlockDecoder)                                            \
    extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta)                     \
        name(GOMPFS_BATCH_PARAMETERS, unsigned long long* lists, unsigned int* num_listed) { \
        extern __shared__ uint4 shared_memory[];                                             \
        gompfs::StrategyShared* const shared =                                               \
            reinterpret_cast<gompfs::StrategyShared*>(shared_memory);                        \
        const gompfs::BlockDecoder decode_block(shared + blockDim.x / gompfs::kWarpSize);    \
        gompfs::decode_to_lists(GOMPFS_BATCH, lists, num_listed, decode_block);              \
    }

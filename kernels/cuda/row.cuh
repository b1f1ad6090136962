// Turns rows of 32 sequences, one in each lane, into a block's bytes.
//
// Before, a block's literals are put at the end of its own output: what is left of them never needs
// more room than the output that is still to come, so none is overwritten before it is read, and
// every byte of output is a copy of some other byte there. The pieces of a row (its literal strings
// and matches) are then known by the position where each begins, as a bit in a mask, and by the
// distance to its source; lane i makes byte i of each aligned 32 bytes. Loads of 8 x 32 bytes are
// under way at once. Only a byte whose source lies among those waits for it, so nothing here relies
// on dependency elimination.
#pragma once

#include "warp.cuh"

namespace gompfs {

constexpr u32 kSector = 32;          // bytes that a warp stores at once
constexpr u32 kSectorsPerChunk = 8;  // whose loads overlap
constexpr u32 kChunk = kSector * kSectorsPerChunk;
constexpr u32 kPartBytes = kWarpSize * kSector;  // what the mask of starts describes

struct LaneSequence {
    u32 literal_length;
    u32 match_length;
    u32 match_offset;
};

// Shared memory of one warp.
struct RowShared {
    u32 starts[kWarpSize];             // a bit for each byte where a piece begins
    int to_source[2 * kWarpSize + 2];  // of each piece; the first and the last are none
    u8 chunk[kChunk];
};

// The output of one block; the same in all lanes. It may be read up to kChunk bytes behind its end.
struct BlockOutput {
    u8* bytes;             // in device memory, at a multiple of 32
    u32 size;              // bytes that the block must have
    u32 position = 0;      // bytes that it has
    u32 num_literals = 0;  // that lie at its end and are still to be copied
};

// Fills in what a chunk copies from itself. near has the lanes whose byte does, for each sector;
// source is counted from the chunk's start.
__device__ inline void copy_inside_chunk(u8* chunk, u8* values, const u32* sources,
                                         const bool* near) {
    const u32 lane = lane_id();
#pragma unroll
    for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
        chunk[sector * kSector + lane] = values[sector];
    }
    __syncwarp();
#pragma unroll
    for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
        const u32 waiting = __ballot_sync(kAllLanes, near[sector]);
        if (waiting == 0) {
            continue;
        }
        // Bytes of the same sector are followed to one that is known, two steps of them at a time.
        const u32 start = sector * kSector;
        u32 source = near[sector] ? sources[sector] : start + lane;
        while (__any_sync(kAllLanes, source >= start && (waiting >> (source - start) & 1) != 0)) {
            const u32 next = __shfl_sync(kAllLanes, source, source % kSector);
            source = source >= start ? next : source;
        }
        values[sector] = chunk[source];
        __syncwarp();
        chunk[start + lane] = values[sector];
        __syncwarp();
    }
}

// Makes the bytes from out.position to end, which lie in one part. Bytes around them in the same
// chunks are copied onto themselves.
__device__ inline void copy_pieces(const BlockOutput& out, u32 part_start, u32 end,
                                   RowShared& shared) {
    const u32 lane = lane_id();
    const u32 own_starts = shared.starts[lane];
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    u32 piece = 0;  // how many begin before the sector
    u32 word = 0;
    for (u32 chunk = part_start; chunk < end; chunk += kChunk) {
        const u32 first = max(chunk, out.position);  // below, all is in device memory
        u8* const target = out.bytes + (chunk + lane);
        u8 values[kSectorsPerChunk];
        u32 sources[kSectorsPerChunk];
        bool near[kSectorsPerChunk];
        bool any_near = false;
#pragma unroll
        for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
            const u32 starts = __shfl_sync(kAllLanes, own_starts, word++);
            const int distance = shared.to_source[piece + __popc(starts & up_to_lane)];
            piece += __popc(starts);
            const u32 place = chunk + sector * kSector + lane;
            const u32 source = place + distance;
            sources[sector] = source - chunk;
            near[sector] = source - first < place - first;
            any_near = any_near || near[sector];
            // What is near is read in vain here: loads that do not depend on it do not wait.
            values[sector] = target[static_cast<int>(sector * kSector) + distance];
        }
        if (__any_sync(kAllLanes, any_near)) {
            copy_inside_chunk(shared.chunk, values, sources, near);
        }
        __syncwarp();  // literals lie where output will be: all are read before any is overwritten
#pragma unroll
        for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
            if (chunk + sector * kSector + lane < out.size) {
                target[sector * kSector] = values[sector];
            }
        }
        __syncwarp();
    }
}

// Writes the starts and sources of the pieces of some lanes; their output begins at start and lies
// in the part from part_start on.
__device__ inline void list_pieces(const BlockOutput& out, const LaneSequence& sequence, u32 start,
                                   u32 literal, u32 part_start, u32 part_end, bool is_here,
                                   RowShared& shared) {
    const int lane = lane_id();
    const bool has_literals = is_here && sequence.literal_length != 0;
    const bool has_match = is_here && sequence.match_length != 0;
    const u32 below = lanes_below(lane);
    const u32 literals = __ballot_sync(kAllLanes, has_literals);
    const u32 matches = __ballot_sync(kAllLanes, has_match);
    u32 piece = 1 + __popc(literals & below) + __popc(matches & below);
    const u32 last = 1 + __popc(literals) + __popc(matches);
    const u32 end = part_end - part_start;
    shared.starts[lane] = lane == static_cast<int>(end / kSector) ? 1u << end % kSector : 0;
    if (lane < 2) {
        shared.to_source[lane == 0 ? 0 : last] = 0;
    }
    __syncwarp();
    const u32 place = start - part_start;
    if (has_literals) {
        shared.to_source[piece++] = static_cast<int>(literal - start);
        atomicOr(&shared.starts[place / kSector], 1u << place % kSector);
    }
    if (has_match) {
        const u32 match_place = place + sequence.literal_length;
        shared.to_source[piece] = -static_cast<int>(sequence.match_offset);
        atomicOr(&shared.starts[match_place / kSector], 1u << match_place % kSector);
    }
    __syncwarp();
}

// Writes a row of sequences. False in all lanes for anything that the block cannot hold.
__device__ inline bool write_row(BlockOutput& out, const LaneSequence& sequence,
                                 RowShared& shared) {
    const int lane = lane_id();
    const u32 own_length = sequence.literal_length + sequence.match_length;
    const u32 through = inclusive_sum(own_length << 16 | sequence.literal_length, lane);
    const u32 row = __shfl_sync(kAllLanes, through, kWarpSize - 1);
    const u32 row_start = out.position;
    const u32 end = row_start + (through >> 16);
    const u32 start = end - own_length;
    const u32 literal = out.size - out.num_literals + (through & 0xffff) - sequence.literal_length;
    const bool bad =
        sequence.match_length != 0 &&
        (sequence.match_offset == 0 || sequence.match_offset > start + sequence.literal_length);
    if (__any_sync(kAllLanes, bad) || (row >> 16) > out.size - row_start ||
        (row & 0xffff) > out.num_literals) {
        return false;
    }
    // A part for most rows, more for those that are long.
    for (int first = 0; first < kWarpSize;) {
        const u32 part_start = out.position / kSector * kSector;
        const bool fits = end <= part_start + kPartBytes;
        const int last = __popc(__ballot_sync(kAllLanes, fits));
        const u32 part_end = __shfl_sync(kAllLanes, end, last - 1);
        list_pieces(out, sequence, start, literal, part_start, part_end,
                    lane >= first && lane < last, shared);
        copy_pieces(out, part_start, part_end, shared);
        out.position = part_end;
        first = last;
    }
    out.num_literals -= row & 0xffff;
    return true;
}

}  // namespace gompfs

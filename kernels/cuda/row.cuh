// Turns rows of 32 sequences, one in each lane, into a block's bytes.
//
// Before, a block's literals are put at the end of its own output: what is left of them never needs
// more room than the output that is still to come, so none is overwritten before it is read, and
// every byte of output is a copy of some other byte there. The pieces of a row (its literal strings
// and matches) are then known by the position where each begins, as a bit in a mask, and by the
// distance to its source. Chunks of 256 bytes are made as soon as all their pieces are known; what
// is left of a row waits for the next one. Lane i makes byte i of each 32, and the loads of a chunk
// are under way at once. Only a byte whose source lies in its own chunk waits for it, so nothing
// here relies on dependency elimination.
#pragma once

#include "format_constants.h"
#include "warp.cuh"

namespace gompfs {

constexpr u32 kSector = 32;          // bytes that a warp stores at once
constexpr u32 kSectorsPerChunk = 8;  // whose loads overlap
constexpr u32 kChunk = kSector * kSectorsPerChunk;
constexpr u32 kWindowWords = 128;
constexpr u32 kWindow = kWindowWords * kSector;  // bytes whose pieces may be listed
constexpr u32 kMaxPieces = 2 * kWarpSize;        // of a row
constexpr u32 kMaxWaiting = kMaxPieces + 62;     // pieces that may wait, a row among them
constexpr u32 kPieceRoom = 256;
constexpr u32 kNoDistance = 2 * kMaxBlockSize;  // what stands for a distance of 0

struct LaneSequence {
    u32 literal_length;
    u32 match_length;
    u32 match_offset;
};

// Shared memory of one warp.
struct alignas(16) RowShared {
    u32 starts[kWindowWords];   // a bit for each byte where a piece begins; position % kWindow
    u32 to_source[kPieceRoom];  // how far before or behind it each has its source, plus kNoDistance
    u8 chunk[kChunk];
};

// The output of one block; the same in all lanes. It may be read up to kChunk bytes behind its end.
struct BlockOutput {
    u8* bytes;             // in device memory, at a multiple of 32
    u32 size;              // bytes that the block must have
    u32 position = 0;      // bytes whose pieces are known
    u32 num_literals = 0;  // that lie at its end and belong to no piece yet
    u32 made = 0;          // bytes that are there: a multiple of kChunk
    u32 piece = 0;         // that holds the last byte made
    u32 num_waiting = 0;   // pieces that begin behind it
};

// Readies the shared memory of a warp for a block.
__device__ inline void clear_pieces(RowShared& shared) {
    reinterpret_cast<uint4*>(shared.starts)[lane_id()] = {0, 0, 0, 0};
    shared.to_source[0] = kNoDistance;
    __syncwarp();
}

// Fills in what a chunk copies from itself. sources are counted from the chunk's start; only those
// before their own place are meant.
__device__ inline void copy_inside_chunk(u8* chunk, u32* values, const u32* sources) {
    const u32 lane = lane_id();
#pragma unroll
    for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
        chunk[sector * kSector + lane] = static_cast<u8>(values[sector]);
    }
    __syncwarp();
#pragma unroll
    for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
        const u32 start = sector * kSector;
        const bool is_near = sources[sector] < start + lane;
        const u32 waiting = __ballot_sync(kAllLanes, is_near);
        if (waiting == 0) {
            continue;
        }
        // Bytes of the same sector are followed to one that is known, two steps of them at a time.
        u32 source = is_near ? sources[sector] : start + lane;
        while (__any_sync(kAllLanes, source >= start && (waiting >> (source - start) & 1) != 0)) {
            const u32 next = __shfl_sync(kAllLanes, source, source % kSector);
            source = source >= start ? next : source;
        }
        values[sector] = chunk[source];
        __syncwarp();
        chunk[start + lane] = static_cast<u8>(values[sector]);
        __syncwarp();
    }
}

// Makes the next chunk.
__device__ inline void copy_chunk(BlockOutput& out, RowShared& shared) {
    const u32 lane = lane_id();
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    u8* const target = out.bytes + (out.made + lane);
    const u8* const before = target - kNoDistance;
    uint4* const starts = reinterpret_cast<uint4*>(shared.starts + out.made % kWindow / kSector);
    u32 piece = out.piece;
    const uint4 low = starts[0], high = starts[1];
    const u32 words[kSectorsPerChunk] = {low.x,  low.y,  low.z,  low.w,
                                         high.x, high.y, high.z, high.w};
    u32 values[kSectorsPerChunk];
    u32 sources[kSectorsPerChunk];
    u32 near = 0;
#pragma unroll
    for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
        const u32 distance = shared.to_source[piece + __popc(words[sector] & up_to_lane)];
        piece += __popc(words[sector]);
        // What is near is read in vain here: loads that do not depend on it do not wait.
        values[sector] = (before + distance)[sector * kSector];
        const u32 source = distance + (sector * kSector + lane);
        near |= source & ~distance;  // has kNoDistance where the source is before, but in the chunk
        sources[sector] = source - kNoDistance;
    }
    if (__any_sync(kAllLanes, (near & kNoDistance) != 0)) {
        copy_inside_chunk(shared.chunk, values, sources);
    }
    __syncwarp();  // literals lie where output will be: all are read before any is overwritten
    if (lane < kSectorsPerChunk / 4) {
        starts[lane] = {0, 0, 0, 0};
    }
    const u32 left = out.size - out.made;
    if (left >= kChunk) {
#pragma unroll
        for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
            target[sector * kSector] = static_cast<u8>(values[sector]);
        }
    } else {
#pragma unroll
        for (u32 sector = 0; sector < kSectorsPerChunk; ++sector) {
            if (sector * kSector + lane < left) {
                target[sector * kSector] = static_cast<u8>(values[sector]);
            }
        }
    }
    __syncwarp();
    out.made += kChunk;
    out.num_waiting -= piece - out.piece;
    out.piece = piece;
}

// Makes room for the pieces of a row behind those that wait.
__device__ inline void move_pieces(BlockOutput& out, RowShared& shared) {
    constexpr u32 kPerLane = (kMaxWaiting + 2) / kWarpSize;
    const u32 lane = lane_id();
    u32 moved[kPerLane];
#pragma unroll
    for (u32 index = 0; index < kPerLane; ++index) {
        moved[index] = shared.to_source[out.piece + min(index * kWarpSize + lane, out.num_waiting)];
    }
    __syncwarp();
#pragma unroll
    for (u32 index = 0; index < kPerLane; ++index) {
        shared.to_source[index * kWarpSize + lane] = moved[index];
    }
    __syncwarp();
    out.piece = 0;
}

__device__ inline void add_piece(RowShared& shared, u32 piece, u32 position, u32 to_source) {
    shared.to_source[piece] = kNoDistance + to_source;
    atomicOr(&shared.starts[position % kWindow / kSector], 1u << position % kSector);
}

// Lists the pieces of some lanes behind those that wait; their output begins at start.
__device__ inline void list_pieces(BlockOutput& out, const LaneSequence& sequence, u32 start,
                                   u32 literal, bool is_here, RowShared& shared) {
    if (out.piece + 1 + out.num_waiting + kMaxPieces >= kPieceRoom) {
        move_pieces(out, shared);
    }
    const bool has_literals = is_here && sequence.literal_length != 0;
    const bool has_match = is_here && sequence.match_length != 0;
    const u32 below = lanes_below(lane_id());
    const u32 literals = __ballot_sync(kAllLanes, has_literals);
    const u32 matches = __ballot_sync(kAllLanes, has_match);
    u32 piece =
        out.piece + 1 + out.num_waiting + __popc(literals & below) + __popc(matches & below);
    if (has_literals) {
        add_piece(shared, piece++, start, literal - start);
    }
    if (has_match) {
        add_piece(shared, piece, start + sequence.literal_length, -sequence.match_offset);
    }
    out.num_waiting += __popc(literals) + __popc(matches);
    __syncwarp();
}

// Makes all chunks whose pieces are known; and what is left behind them, if that is asked for. That
// chunk is made once more later; what is there by then is copied onto itself.
__device__ inline void copy_pieces(BlockOutput& out, bool all, RowShared& shared) {
    const bool has_rest = all && out.position % kChunk != 0;
    if (has_rest) {
        if (lane_id() == 0) {
            add_piece(shared, out.piece + 1 + out.num_waiting, out.position, 0);
        }
        __syncwarp();
    }
    const u32 end = all ? out.position : out.position / kChunk * kChunk;
    while (out.made < end) {
        copy_chunk(out, shared);
    }
    if (has_rest) {
        out.made -= kChunk;
        out.piece = out.num_waiting = 0;
        shared.to_source[0] = kNoDistance;
        __syncwarp();
    }
}

// Makes a block's bytes from its rows, by their pieces.
struct PieceRows {
    RowShared& shared;

    __device__ void begin() { clear_pieces(shared); }

    // Takes a row of sequences, and makes what can be made; all when the block is complete. False
    // in all lanes for anything that the block cannot hold.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        const int lane = lane_id();
        const u32 own_length = sequence.literal_length + sequence.match_length;
        const u32 through = inclusive_sum(own_length << 16 | sequence.literal_length, lane);
        const u32 literals = through & 0xffff;
        const u32 end = out.position + (through >> 16);
        const u32 start = end - own_length;
        const u32 literal = out.size - out.num_literals + literals - sequence.literal_length;
        const bool leads_before = sequence.match_length != 0 &&  // so does an offset of 0
                                  sequence.match_offset - 1 >= start + sequence.literal_length;
        if (__any_sync(kAllLanes, leads_before || end > out.size || literals > out.num_literals)) {
            return false;
        }
        out.num_literals -= __shfl_sync(kAllLanes, literals, kWarpSize - 1);
        // So far back in the block, much has left the L2 cache already.
        prefetch(out.bytes + (start + sequence.literal_length - sequence.match_offset));
        // All at once for most rows; those that are long, in parts.
        for (int first = 0; first < kWarpSize;) {
            const int last = __popc(__ballot_sync(kAllLanes, end <= out.made + kWindow));
            list_pieces(out, sequence, start, literal, lane >= first && lane < last, shared);
            out.position = __shfl_sync(kAllLanes, end, last - 1);
            const bool all = out.num_waiting > kMaxWaiting || out.position == out.size;
            copy_pieces(out, all, shared);
            first = last;
        }
        return true;
    }
};

}  // namespace gompfs

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
constexpr u32 kWindowWords = 64;
constexpr u32 kWindow = kWindowWords * kSector;  // bytes whose pieces may be listed
constexpr u32 kMaxPieces = 2 * kWarpSize;        // of a row
constexpr u32 kMaxWaiting = 62;                  // pieces that may wait for the next row
constexpr u32 kNoDistance = 2 * kMaxBlockSize;   // what stands for a distance of 0

struct LaneSequence {
    u32 literal_length;
    u32 match_length;
    u32 match_offset;
};

// Shared memory of one warp. The window begins where the next chunk does.
struct alignas(16) RowShared {
    u32 starts[kWindowWords];  // a bit for each byte of the window where a piece begins
    // How far before or behind it each piece has its source, plus kNoDistance; first of the piece
    // that holds the byte before the window
    u32 to_source[1 + kMaxWaiting + kMaxPieces + 1];
    u8 chunk[kChunk];
};

// The output of one block; the same in all lanes. It may be read up to kChunk bytes behind its end.
struct BlockOutput {
    u8* bytes;             // in device memory, at a multiple of 32
    u32 size;              // bytes that the block must have
    u32 position = 0;      // bytes whose pieces are known
    u32 num_literals = 0;  // that lie at its end and belong to no piece yet
    u32 window = 0;        // where chunks are still to be made: a multiple of kChunk
    u32 num_pieces = 0;    // that begin in the window
};

// Readies the shared memory of a warp for a block.
__device__ inline void clear_pieces(RowShared& shared) {
    const int lane = lane_id();
    shared.starts[lane] = 0;
    shared.starts[kWarpSize + lane] = 0;
    shared.to_source[lane] = kNoDistance;
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

// Makes the chunk at a place of the window. piece is the one that holds the byte before it;
// returns the one that holds its last byte.
__device__ inline u32 copy_chunk(const BlockOutput& out, u32 chunk, u32 piece, RowShared& shared) {
    const u32 lane = lane_id();
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    u8* const target = out.bytes + (out.window + chunk + lane);
    const u8* const before = target - kNoDistance;
    const uint4* const starts = reinterpret_cast<const uint4*>(shared.starts + chunk / kSector);
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
    const u32 left = out.size - out.window - chunk;
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
    return piece;
}

// Lets the window begin behind what was made of it, which ends in a piece.
__device__ inline void move_window(BlockOutput& out, u32 made, u32 piece, RowShared& shared) {
    const u32 lane = lane_id();
    const u32 word = made / kSector + lane;
    const u32 starts = lane < kSectorsPerChunk && word < kWindowWords ? shared.starts[word] : 0;
    const u32 waiting = out.num_pieces - piece;
    const u32 first = shared.to_source[piece + min(lane, waiting)];
    const u32 second = shared.to_source[piece + min(lane + kWarpSize, waiting)];
    __syncwarp();
    shared.starts[lane] = starts;
    shared.starts[kWarpSize + lane] = 0;
    shared.to_source[lane] = first;
    shared.to_source[kWarpSize + lane] = second;
    __syncwarp();
    out.window += made;
    out.num_pieces = waiting;
}

// Lists the pieces of some lanes behind those in the window; their output begins at start.
__device__ inline void list_pieces(BlockOutput& out, const LaneSequence& sequence, u32 start,
                                   u32 literal, bool is_here, RowShared& shared) {
    const int lane = lane_id();
    const bool has_literals = is_here && sequence.literal_length != 0;
    const bool has_match = is_here && sequence.match_length != 0;
    const u32 below = lanes_below(lane);
    const u32 literals = __ballot_sync(kAllLanes, has_literals);
    const u32 matches = __ballot_sync(kAllLanes, has_match);
    u32 piece = out.num_pieces + 1 + __popc(literals & below) + __popc(matches & below);
    const u32 place = start - out.window;
    if (has_literals) {
        shared.to_source[piece++] = kNoDistance + literal - start;
        atomicOr(&shared.starts[place / kSector], 1u << place % kSector);
    }
    if (has_match) {
        const u32 match_place = place + sequence.literal_length;
        shared.to_source[piece] = kNoDistance - sequence.match_offset;
        atomicOr(&shared.starts[match_place / kSector], 1u << match_place % kSector);
    }
    out.num_pieces += __popc(literals) + __popc(matches);
    __syncwarp();
}

// Makes all chunks whose pieces are known; with the rest, less than a chunk, where it is asked for.
// That chunk is made once more when more of its pieces are known; what is there by then is copied
// onto itself.
__device__ inline void copy_pieces(BlockOutput& out, bool with_rest, RowShared& shared) {
    const u32 known = out.position - out.window;
    const u32 end = with_rest ? known : known / kChunk * kChunk;
    if (end == 0) {
        return;
    }
    if (end % kChunk != 0) {
        if (lane_id() == 0) {
            shared.to_source[out.num_pieces + 1] = kNoDistance;
            shared.starts[end / kSector] |= 1u << end % kSector;
        }
        __syncwarp();
    }
    u32 piece = 0;
    for (u32 chunk = 0; chunk < end; chunk += kChunk) {
        piece = copy_chunk(out, chunk, piece, shared);
    }
    if (with_rest) {
        clear_pieces(shared);
        out.num_pieces = 0;
        out.window += end / kChunk * kChunk;
    } else {
        move_window(out, end, piece, shared);
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
        // All at once for most rows; those that are long, in parts.
        for (int first = 0; first < kWarpSize;) {
            const int last = __popc(__ballot_sync(kAllLanes, end <= out.window + kWindow));
            list_pieces(out, sequence, start, literal, lane >= first && lane < last, shared);
            out.position = __shfl_sync(kAllLanes, end, last - 1);
            const bool all = out.num_pieces > kMaxWaiting || out.position == out.size;
            copy_pieces(out, all, shared);
            first = last;
        }
        return true;
    }
};

}  // namespace gompfs

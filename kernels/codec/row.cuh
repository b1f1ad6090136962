// Writes the bytes of a block from rows of 32 sequences, one sequence per lane of a warp.
//
// Algorithm
//
// Before the first row, the block's literals are stored at the end of the block's own output. The
// literals that are not yet used never need more space than the output that is not yet written, so
// no literal is overwritten before it is read. Every byte of output is therefore a copy of another
// byte of the output, for literals and matches alike.
//
// A "piece" is a literal string or a match. list_pieces records each piece of a row in two ways: a
// bit in a mask (RowShared::starts) at the position where the piece begins, and the distance from
// the piece to its source (RowShared::to_source). copy_chunk then writes 256 bytes at a time: lane
// i writes byte i of each 32 bytes. The number of bits set in the mask up to a byte is the index of
// its piece, and the byte's source is that piece's distance away. All lanes do the same work,
// whatever the lengths of the pieces are.
//
// A chunk is written as soon as all its pieces are listed; the rest of a row waits for the next
// row. The eight loads of a chunk are in flight at once. A byte whose source lies in the same chunk
// is filled in afterwards from shared memory (copy_inside_chunk). So the result does not depend on
// whether the payload obeys dependency elimination.
//
// Invariants
//
// - Output below BlockOutput::made is final.
// - Pieces are listed up to BlockOutput::position.
// - The distance of a piece is stored plus kNoDistance, so that the stored number is positive.
// - write() checks lengths and offsets before anything is listed, so no load or store leaves the
//   block's output. Loads may reach kChunk bytes past its end.
// - Sources (for example OutputSources) tell where the source of a match is. Only they know about
//   dictionaries.
#pragma once

#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kSector = 32;          // number of bytes that a warp stores at once
constexpr u32 kSectorsPerChunk = 8;  // the loads of these sectors overlap
constexpr u32 kChunk = kSector * kSectorsPerChunk;
constexpr u32 kWindowWords = 128;
constexpr u32 kWindow = kWindowWords * kSector;  // bytes whose pieces can be listed at once
constexpr u32 kMaxPieces = 2 * kWarpSize;        // per row
constexpr u32 kMaxWaiting = kMaxPieces + 62;     // limit of listed pieces not yet written
constexpr u32 kPieceRoom = 256;
constexpr u32 kMaxRowOutput = kMaxPoolSize;     // the largest output: that of a head's token bytes
constexpr u32 kNoDistance = 2 * kMaxRowOutput;  // added to every distance

struct LaneSequence {
    u32 literal_length;
    u32 match_length;
    u32 match_offset;
};

// The shared memory of one warp.
struct alignas(16) RowShared {
    u32 starts[kWindowWords];   // a bit per byte: whether a piece begins there; indexed by position
                                // % kWindow
    u32 to_source[kPieceRoom];  // per piece: source position minus position, plus kNoDistance
    u8 chunk[kChunk];
};

// The output of one block; the same in all lanes. It can be read up to kChunk bytes past its end.
struct BlockOutput {
    u8* bytes;             // in device memory, at a multiple of 32
    u32 size;              // number of bytes that the block must have
    u32 position = 0;      // number of bytes whose pieces are listed
    u32 num_literals = 0;  // number of literals at the end of the output that no piece uses yet
    u32 made = 0;          // number of bytes written: a multiple of kChunk
    u32 piece = 0;         // index of the piece that holds the last byte written
    u32 num_waiting = 0;   // number of pieces that begin after the last byte written
};

// Prepares a warp's shared memory for a block.
__device__ inline void clear_pieces(RowShared& shared) {
    reinterpret_cast<uint4*>(shared.starts)[lane_id()] = {0, 0, 0, 0};
    shared.to_source[0] = kNoDistance;
    __syncwarp();
}

// Fills in the bytes of a chunk that are copied from the chunk itself. `sources` count from the
// chunk's start; a source at or after its own byte means that the byte comes from outside the
// chunk.
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
        // Sources in the same sector are followed to a byte that is known. Each step doubles the
        // distance followed, so 5 steps are enough for 32 bytes.
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

// Writes the next chunk.
template <class Sources>
__device__ inline void copy_chunk(BlockOutput& out, RowShared& shared, const Sources& sources_of) {
    const u32 lane = lane_id();
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    u8* const target = out.bytes + (out.made + lane);
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
        // A source in the same chunk is loaded too, although its value is not valid yet: loads
        // without a condition can all be in flight at once.
        values[sector] = (sources_of.origin(target, distance) + distance)[sector * kSector];
        const u32 source = distance + (sector * kSector + lane);
        // Has the bit kNoDistance if the source is in the chunk and before this byte.
        near |= source & ~distance;
        sources[sector] = source - kNoDistance;
    }
    if (__any_sync(kAllLanes, (near & kNoDistance) != 0)) {
        copy_inside_chunk(shared.chunk, values, sources);
    }
    __syncwarp();  // all literals are read before the output overwrites them
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

// Moves the listed pieces to the front of to_source, to make space for the pieces of a row.
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

// Lists the pieces of the lanes for which is_here is true, after the pieces already listed. The
// output of a lane's sequence begins at `start`, its literals are at `literal`, and the source of
// its match is to_source away from the match.
__device__ inline void list_pieces(BlockOutput& out, const LaneSequence& sequence, u32 start,
                                   u32 literal, u32 to_source, bool is_here, RowShared& shared) {
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
        add_piece(shared, piece, start + sequence.literal_length, to_source);
    }
    out.num_waiting += __popc(literals) + __popc(matches);
    __syncwarp();
}

// Writes all chunks whose pieces are complete. If `all` is true, also writes the incomplete chunk
// after them. That chunk is written again later; the bytes already written are then copied onto
// themselves.
template <class Sources>
__device__ inline void copy_pieces(BlockOutput& out, bool all, RowShared& shared,
                                   const Sources& sources) {
    const bool has_rest = all && out.position % kChunk != 0;
    if (has_rest) {
        if (lane_id() == 0) {
            add_piece(shared, out.piece + 1 + out.num_waiting, out.position, 0);
        }
        __syncwarp();
    }
    const u32 end = all ? out.position : out.position / kChunk * kChunk;
    while (out.made < end) {
        copy_chunk(out, shared, sources);
    }
    if (has_rest) {
        out.made -= kChunk;
        out.piece = out.num_waiting = 0;
        shared.to_source[0] = kNoDistance;
        __syncwarp();
    }
}

// The source of a lane's match.
struct MatchSource {
    bool is_valid;
    u32 distance;  // from the match to its source
};

// The sources of blocks that copy from their own output.
struct OutputSources {
    __device__ MatchSource of(const LaneSequence& sequence, u32 match) const {
        // An offset of 0 is too large as well.
        return {sequence.match_offset - 1 < match, -sequence.match_offset};
    }
    // The address from which a stored distance leads to the source of the byte at `target`.
    __device__ const u8* origin(const u8* target, u32) const { return target - kNoDistance; }
};

// Takes a row of sequences and writes the chunks that are complete, or everything if the block is
// complete. Returns false in all lanes if the block cannot hold the row.
template <class Sources>
__device__ inline bool write_row(BlockOutput& out, const LaneSequence& sequence, RowShared& shared,
                                 const Sources& sources) {
    const int lane = lane_id();
    const u32 own_length = sequence.literal_length + sequence.match_length;
    const u32 through = inclusive_sum(own_length << 16 | sequence.literal_length, lane);
    const u32 literals = through & 0xffff;
    const u32 end = out.position + (through >> 16);
    const u32 start = end - own_length;
    const u32 literal = out.size - out.num_literals + literals - sequence.literal_length;
    const u32 match = start + sequence.literal_length;
    const MatchSource source = sources.of(sequence, match);
    const bool leads_out = sequence.match_length != 0 && !source.is_valid;
    if (__any_sync(kAllLanes, leads_out || end > out.size || literals > out.num_literals)) {
        return false;
    }
    out.num_literals -= __shfl_sync(kAllLanes, literals, kWarpSize - 1);
    // A source far back in the block has often been evicted from the L2 cache.
    const u32 stored = kNoDistance + source.distance;
    prefetch(sources.origin(out.bytes + match, stored) + stored);
    // Most rows are listed in one step; a row longer than the window is listed in several.
    for (int first = 0; first < kWarpSize;) {
        const int last = __popc(__ballot_sync(kAllLanes, end <= out.made + kWindow));
        list_pieces(out, sequence, start, literal, source.distance, lane >= first && lane < last,
                    shared);
        out.position = __shfl_sync(kAllLanes, end, last - 1);
        const bool all = out.num_waiting > kMaxWaiting || out.position == out.size;
        copy_pieces(out, all, shared, sources);
        first = last;
    }
    return true;
}

// Writes the bytes of a block from its rows by means of pieces.
struct PieceRows {
    RowShared& shared;

    __device__ void begin() { clear_pieces(shared); }

    // See write_row.
    __device__ bool write(BlockOutput& out, const LaneSequence& sequence) {
        return write_row(out, sequence, shared, OutputSources());
    }
};

}  // namespace gompfs

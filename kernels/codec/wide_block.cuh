// Decodes one block with a whole CTA, in shared memory, by pointer jumping (the decoder of K.
// Wesley, "Massively Parallel LZ77 Compression and Decompression on the GPU", Texas State
// University, 2022). One warp per block (row.cuh) decodes many blocks faster, but a few blocks
// leave most of the device idle; here a block takes a fraction of that time.
//
// Algorithm
//
// 1. The sequences of the block are laid out, a few per thread (lay_out): prefix sums over their
//    lengths tell where each literal string and each match begins. A bit marks that position, and
//    `stored` holds there the match offset, or the index of the string's first literal.
// 2. The block is written in segments, in order (write_segment). Each byte of a segment finds the
//    piece that it belongs to, the last marked position up to its own. A literal takes its value. A
//    byte of a match has the match offset as its distance: its parent is the byte at that distance
//    before it. If that byte lies before the segment, its value is known, and so is this one.
// 3. Each byte whose value is not known adds the distance of its parent to its own, again and
//    again, until the value of its parent is known. The n-th byte of a chain of matches takes
//    log2(n) rounds.
//
// In the thesis, all bytes of a text jump at once. Segments leave less to do: most matches copy
// from an earlier segment. Nothing depends on the order of the matches within a segment, so
// dependency elimination plays no part.
//
// Invariants
//
// - lay_out checks lengths and offsets before it writes anything, so no index leaves the block.
// - The distances of a byte and of its parent together lead to another byte of the block: their sum
//   never exceeds the byte's position, so 16 bits are enough for all of them.
// - Between two barriers, no thread reads what another writes.
#pragma once

#include "codec/batch.cuh"
#include "codec/row.cuh"
#include "shared/cta_scan.cuh"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kWideBlockSize = 65536;  // the largest block that these kernels decode
constexpr u32 kWideWords = kWideBlockSize / kWarpSize;
constexpr int kWideThreads = 1024;
constexpr u32 kWideBytes = 8;      // bytes of a segment per thread
constexpr u32 kWideSequences = 4;  // sequences per thread that are laid out at once
constexpr u32 kWideSums = kWideSequences * kWarpSize;

// Which of 32 bytes begin a piece, and which of these a literal string: a bit per byte.
struct PieceMarks {
    u32 starts;
    u32 literals;
};

struct WideShared {
    // At the start of a piece: its match offset, or the index of its first literal. In the segment
    // that is being written: the distance of each byte, or 0 if its value is known.
    u16 stored[kWideBlockSize];
    u8 bytes[kWideBlockSize];  // of the output; before that, memory for the codec
    PieceMarks marks[kWideWords];
    u16 last_starts[kWideWords];  // where the last piece begins that begins before these bytes
    u32 length_sums[kWideSums];   // of the sequences of each warp
    u32 literal_sums[kWideSums];
    u32 position;      // number of bytes laid out
    u32 num_literals;  // number of literals laid out
    u32 crossing;      // what `stored` held for the piece that began before the segment
    u32 block;         // index of the CTA's next block
};

// As for_each_block, but a CTA takes the blocks. All threads of the CTA call decode(task).
template <class Decode>
__device__ inline void for_each_block_of_cta(const GpuBatch& batch, u32& next, Decode&& decode) {
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) {
            next = atomicAdd(batch.next_block, 1u);
        }
        __syncthreads();
        const u32 index = next;
        if (index >= batch.num_blocks) {
            return;
        }
        const BlockTask task = task_at(batch, index);
        const bool valid = task.output_size <= kWideBlockSize && decode(task);
        if (threadIdx.x == 0) {
            batch.statuses[index] = valid ? kStatusOk : kStatusBadPayload;
        }
    }
}

// Prepares the memory for a block. Ends with a barrier.
__device__ inline void begin_block(WideShared& shared) {
    for (u32 word = threadIdx.x; word < kWideWords; word += blockDim.x) {
        shared.marks[word] = {0, 0};
    }
    if (threadIdx.x == 0) {
        shared.position = 0;
        shared.num_literals = 0;
    }
    __syncthreads();
}

// Replaces `count` numbers by the sum of those before each. One warp; at most kWideSums numbers.
__device__ inline void sum_before(u32* numbers, u32 count) {
    constexpr u32 kPerLane = kWideSums / kWarpSize;
    const u32 first = lane_id() * kPerLane;
    u32 own[kPerLane];
    u32 sum = 0;
#pragma unroll
    for (u32 index = 0; index < kPerLane; ++index) {
        own[index] = first + index < count ? numbers[first + index] : 0;
        sum += own[index];
    }
    u32 before = inclusive_sum(sum, lane_id()) - sum;
#pragma unroll
    for (u32 index = 0; index < kPerLane; ++index) {
        if (first + index < count) {
            numbers[first + index] = before;
        }
        before += own[index];
    }
    __syncwarp();
}

__device__ inline void mark_start(WideShared& shared, u32 position, u32 stored, bool is_literal) {
    shared.stored[position] = static_cast<u16>(stored);
    PieceMarks& marks = shared.marks[position / kWarpSize];
    atomicOr(&marks.starts, 1u << position % kWarpSize);
    if (is_literal) {
        atomicOr(&marks.literals, 1u << position % kWarpSize);
    }
}

// Lays out the next sequences: sequence i of thread t is number i * blockDim.x + t of them. Those
// that do not exist are empty. Returns false in all threads if the block cannot hold them, or if a
// match leads before the block. Ends with a barrier.
__device__ inline bool lay_out(WideShared& shared, const LaneSequence (&sequences)[kWideSequences],
                               u32 size, u32 num_literals) {
    const u32 lane = lane_id(), warp = threadIdx.x / kWarpSize;
    const u32 num_warps = blockDim.x / kWarpSize;
    u32 through[kWideSequences];  // lengths in the high half, literals in the low half
#pragma unroll
    for (u32 index = 0; index < kWideSequences; ++index) {
        const LaneSequence& sequence = sequences[index];
        const u32 own_length = sequence.literal_length + sequence.match_length;
        through[index] = inclusive_sum(own_length << 16 | sequence.literal_length, lane);
        if (lane == kWarpSize - 1) {
            shared.length_sums[index * num_warps + warp] = through[index] >> 16;
            shared.literal_sums[index * num_warps + warp] = through[index] & 0xffff;
        }
    }
    __syncthreads();
    if (warp < 2) {
        sum_before(warp == 0 ? shared.length_sums : shared.literal_sums,
                   kWideSequences * num_warps);
    }
    __syncthreads();
    u32 ends[kWideSequences], literal_ends[kWideSequences];
    bool is_bad = false;
#pragma unroll
    for (u32 index = 0; index < kWideSequences; ++index) {
        const LaneSequence& sequence = sequences[index];
        const u32 before = index * num_warps + warp;
        ends[index] = shared.position + shared.length_sums[before] + (through[index] >> 16);
        literal_ends[index] =
            shared.num_literals + shared.literal_sums[before] + (through[index] & 0xffff);
        // Also true for a match offset of 0.
        const bool leads_before = sequence.match_length != 0 &&
                                  sequence.match_offset - 1 >= ends[index] - sequence.match_length;
        is_bad = is_bad || leads_before || ends[index] > size || literal_ends[index] > num_literals;
    }
    if (__syncthreads_or(is_bad)) {
        return false;
    }
#pragma unroll
    for (u32 index = 0; index < kWideSequences; ++index) {
        const LaneSequence& sequence = sequences[index];
        const u32 match = ends[index] - sequence.match_length;
        if (sequence.literal_length != 0) {
            mark_start(shared, match - sequence.literal_length,
                       literal_ends[index] - sequence.literal_length, true);
        }
        if (sequence.match_length != 0) {
            mark_start(shared, match, sequence.match_offset, false);
        }
    }
    if (threadIdx.x == blockDim.x - 1) {
        shared.position = ends[kWideSequences - 1];
        shared.num_literals = literal_ends[kWideSequences - 1];
    }
    __syncthreads();
    return true;
}

// Sets last_starts. Each thread scans a few words. Ends with a barrier.
__device__ inline void find_last_starts(WideShared& shared, u32 size) {
    const u32 num_words = (size + kWarpSize - 1) / kWarpSize;
    const u32 per_thread = (num_words + blockDim.x - 1) / blockDim.x;
    const u32 first = min(threadIdx.x * per_thread, num_words);
    const u32 end = min(first + per_thread, num_words);
    u32 last = 0;  // plus 1, so that 0 means none
    for (u32 word = first; word < end; ++word) {
        const u32 bits = shared.marks[word].starts;
        last = bits == 0 ? last : word * kWarpSize + 32 - __clz(bits);
    }
    u32 before = scan_before(last, shared.length_sums, Maximum{});
    for (u32 word = first; word < end; ++word) {
        const u32 bits = shared.marks[word].starts;
        shared.last_starts[word] = static_cast<u16>(before - 1);
        before = bits == 0 ? before : word * kWarpSize + 32 - __clz(bits);
    }
    __syncthreads();
}

// The piece of a byte: where it begins, and what `stored` holds there.
struct BytePiece {
    u32 start;
    u32 stored;
    bool is_literal;
};

__device__ inline BytePiece find_piece(const WideShared& shared, u32 segment, u32 word) {
    const u32 lane = lane_id();
    const PieceMarks marks = shared.marks[word];
    const u32 up_to_lane = marks.starts & 0xffffffffu >> (31 - lane);
    if (up_to_lane != 0) {
        const u32 bit = 31 - __clz(up_to_lane);
        const u32 start = word * kWarpSize + bit;
        return {start, shared.stored[start], (marks.literals >> bit & 1) != 0};
    }
    const u32 start = shared.last_starts[word];
    const u32 literals = shared.marks[start / kWarpSize].literals;
    return {start, start < segment ? shared.crossing : shared.stored[start],
            (literals >> start % kWarpSize & 1) != 0};
}

// The bytes of a segment that a thread writes: byte i is in word first_word + i * num_warps.
struct SegmentBytes {
    u32 distances[kWideBytes];  // 0 if the value is known
    u32 values[kWideBytes];
};

// Looks up the pieces of this thread's bytes. Returns what `stored` holds for the last of them.
__device__ inline u32 find_sources(const WideShared& shared, u32 segment, u32 size,
                                   const u8* literals, SegmentBytes& own) {
    const u32 num_warps = blockDim.x / kWarpSize;
    const u32 first_word = segment / kWarpSize + threadIdx.x / kWarpSize;
    u32 last = 0;
#pragma unroll
    for (u32 index = 0; index < kWideBytes; ++index) {
        const u32 word = first_word + index * num_warps;
        const u32 position = word * kWarpSize + lane_id();
        own.distances[index] = own.values[index] = 0;
        if (position < size) {
            const BytePiece piece = find_piece(shared, segment, word);
            last = piece.stored;
            if (piece.is_literal) {
                own.values[index] = literals[piece.stored + position - piece.start];
            } else if (position - piece.stored < segment) {
                own.values[index] = shared.bytes[position - piece.stored];
            } else {
                own.distances[index] = piece.stored;
            }
        }
    }
    return last;
}

// Writes the bytes of a segment. Ends with a barrier.
__device__ inline void write_segment(WideShared& shared, u32 segment, u32 size,
                                     const u8* literals) {
    const u32 num_warps = blockDim.x / kWarpSize;
    const u32 first = segment + threadIdx.x / kWarpSize * kWarpSize + lane_id();
    SegmentBytes own;
    const u32 last = find_sources(shared, segment, size, literals, own);
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        shared.crossing = last;
    }
    u32 changed = 0xffffffff;  // a bit for each of this thread's bytes
    do {
        bool is_pending = false;
#pragma unroll
        for (u32 index = 0; index < kWideBytes; ++index) {
            const u32 position = first + index * num_warps * kWarpSize;
            if (position < size && (changed >> index & 1) != 0) {
                shared.stored[position] = static_cast<u16>(own.distances[index]);
                if (own.distances[index] == 0) {
                    shared.bytes[position] = static_cast<u8>(own.values[index]);
                }
            }
            is_pending = is_pending || own.distances[index] != 0;
        }
        if (!__syncthreads_or(is_pending)) {
            return;
        }
        changed = 0;
#pragma unroll
        for (u32 index = 0; index < kWideBytes; ++index) {
            if (own.distances[index] != 0) {
                const u32 parent = first + index * num_warps * kWarpSize - own.distances[index];
                const u32 distance = shared.stored[parent];
                own.values[index] = shared.bytes[parent];
                own.distances[index] = distance == 0 ? 0 : own.distances[index] + distance;
                changed |= 1u << index;
            }
        }
        __syncthreads();
    } while (true);
}

// Stores the output, 16 bytes per thread and step.
__device__ inline void store_bytes(const WideShared& shared, u8* output, u32 size) {
    const u32 num_whole = size / sizeof(uint4);
    const uint4* const from = reinterpret_cast<const uint4*>(shared.bytes);
    for (u32 index = threadIdx.x; index < num_whole; index += blockDim.x) {
        reinterpret_cast<uint4*>(output)[index] = from[index];
    }
    const u32 position = num_whole * sizeof(uint4) + threadIdx.x;
    if (position < size) {
        output[position] = shared.bytes[position];
    }
}

// Writes a block whose sequences are all laid out to `target`.
__device__ inline void write_block(WideShared& shared, u32 size, const u8* literals, u8* target) {
    find_last_starts(shared, size);
    for (u32 segment = 0; segment < size; segment += blockDim.x * kWideBytes) {
        write_segment(shared, segment, size, literals);
    }
    store_bytes(shared, target, size);
}

}  // namespace gompfs

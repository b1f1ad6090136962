// Decodes one block with a whole CTA, in shared memory, by pointer jumping (K. Wesley, "A parallel
// LZ77", Texas State University, 2022: her decoder). One warp per block (row.cuh) decodes many
// blocks faster, but a few blocks leave most of the device idle; here a block takes a fraction of
// that time.
//
// Algorithm
//
// 1. The sequences of the block are laid out, one per thread (lay_out): prefix sums over their
//    lengths tell where each literal string and each match begins. A bit marks that position, and
//    `distances` holds there the match offset, or the index of the string's first literal.
// 2. Each byte finds the piece that it belongs to, the last marked position up to its own
//    (expand_pieces). A byte of a match gets the match offset as its distance: its parent is the
//    byte at that distance before it. A literal gets its value and the distance 0: it is a root.
// 3. Each byte adds the distance of its parent to its own, again and again, until its parent is a
//    root (jump_to_roots). A byte at the end of a chain of n matches takes log2(n) rounds.
// 4. Each byte takes the value of its root (store_bytes).
//
// Nothing depends on the order of the matches, so dependency elimination plays no part.
//
// Invariants
//
// - lay_out checks lengths and offsets before it writes anything, so no index leaves the block.
// - A byte and its parent have distances that together lead to another byte of the block: sums
//   never exceed the byte's position, so 16 bits are enough for all of them.
// - Between two barriers, no thread reads what another writes, but for the marks at which pieces
//   begin: those are not written again until all bytes have read them.
#pragma once

#include "codec/batch.cuh"
#include "codec/row.cuh"
#include "shared/cta_scan.cuh"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kWideBlockSize = 65536;  // the largest block that these kernels decode
constexpr u32 kWideWords = kWideBlockSize / kWarpSize;
constexpr int kWideThreads = 1024;
constexpr u32 kWideBatch = 8;  // number of bytes that a thread has in registers at once

struct WideShared {
    u16 distances[kWideBlockSize];
    u8 bytes[kWideBlockSize];     // of the output; before that, memory for the codec
    u32 starts[kWideWords];       // a bit per byte: a piece begins there; later: its parent is not
                                  // known to be a root
    u32 literals[kWideWords];     // a bit per byte: a literal string begins there
    u16 last_starts[kWideWords];  // where the last piece begins that begins before this word's byte
    u32 sums[2][kWarpSize];       // scratch memory of prefix sums
    u32 position;                 // number of bytes laid out
    u32 num_literals;             // number of literals laid out
    u32 block;                    // index of the CTA's next block
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
        shared.starts[word] = 0;
        shared.literals[word] = 0;
    }
    if (threadIdx.x == 0) {
        shared.position = 0;
        shared.num_literals = 0;
    }
    __syncthreads();
}

__device__ inline void mark(u32* bits, u32 position) {
    atomicOr(&bits[position / kWarpSize], 1u << position % kWarpSize);
}

// Lays out the next sequences, one per thread in their order; threads without one have an empty
// sequence. Returns false in all threads if the block cannot hold them, or a match leads before the
// block. Ends with a barrier.
__device__ inline bool lay_out(WideShared& shared, const LaneSequence& sequence, u32 size,
                               u32 num_literals) {
    const u32 own_length = sequence.literal_length + sequence.match_length;
    const u32 start = shared.position + scan_before(own_length, shared.sums[0], Sum{});
    const u32 literal =
        shared.num_literals + scan_before(sequence.literal_length, shared.sums[1], Sum{});
    const u32 match = start + sequence.literal_length;
    // Also true for a match offset of 0.
    const bool leads_before = sequence.match_length != 0 && sequence.match_offset - 1 >= match;
    const bool is_bad = leads_before || start + own_length > size ||
                        literal + sequence.literal_length > num_literals;
    if (__syncthreads_or(is_bad)) {
        return false;
    }
    if (sequence.literal_length != 0) {
        shared.distances[start] = static_cast<u16>(literal);
        mark(shared.starts, start);
        mark(shared.literals, start);
    }
    if (sequence.match_length != 0) {
        shared.distances[match] = static_cast<u16>(sequence.match_offset);
        mark(shared.starts, match);
    }
    if (threadIdx.x == blockDim.x - 1) {
        shared.position = start + own_length;
        shared.num_literals = literal + sequence.literal_length;
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
        const u32 bits = shared.starts[word];
        last = bits == 0 ? last : word * kWarpSize + 32 - __clz(bits);
    }
    u32 before = scan_before(last, shared.sums[0], Maximum{});
    for (u32 word = first; word < end; ++word) {
        const u32 bits = shared.starts[word];
        shared.last_starts[word] = static_cast<u16>(before - 1);
        before = bits == 0 ? before : word * kWarpSize + 32 - __clz(bits);
    }
    __syncthreads();
}

// What a byte takes from its piece: a distance, or the value of a literal.
struct ByteSource {
    u32 distance;  // 0 for a literal
    u8 value;
};

__device__ inline ByteSource find_source(const WideShared& shared, u32 word, const u8* literals) {
    const u32 lane = lane_id();
    const u32 position = word * kWarpSize + lane;
    const u32 up_to_lane = shared.starts[word] & 0xffffffffu >> (31 - lane);
    const u32 start =
        up_to_lane == 0 ? shared.last_starts[word] : word * kWarpSize + 31 - __clz(up_to_lane);
    const u32 stored = shared.distances[start];
    const bool is_literal = shared.literals[start / kWarpSize] >> start % kWarpSize & 1;
    return {is_literal ? 0 : stored, is_literal ? literals[stored + position - start] : u8{0}};
}

// Sets the distance of each byte, and the value of each literal. The bits of `starts` become: the
// byte is not a literal. `literals` are all literals of the block. Ends with a barrier.
__device__ inline void expand_pieces(WideShared& shared, u32 size, const u8* literals) {
    const u32 lane = lane_id();
    const u32 num_warps = blockDim.x / kWarpSize;
    for (u32 first = threadIdx.x / kWarpSize; first * kWarpSize < size;
         first += num_warps * kWideBatch) {
        ByteSource sources[kWideBatch];
#pragma unroll
        for (u32 index = 0; index < kWideBatch; ++index) {
            const u32 word = first + index * num_warps;
            sources[index] = word * kWarpSize + lane < size ? find_source(shared, word, literals)
                                                            : ByteSource{0, 0};
        }
#pragma unroll
        for (u32 index = 0; index < kWideBatch; ++index) {
            const u32 word = first + index * num_warps;
            const u32 position = word * kWarpSize + lane;
            const bool is_match = sources[index].distance != 0;
            const u32 matches = __ballot_sync(kAllLanes, is_match);
            if (word * kWarpSize >= size) {
                continue;
            }
            // The distance where a piece begins is read by other threads; a match has it already.
            const bool begins = shared.starts[word] >> lane & 1;
            if (is_match && !begins) {
                shared.distances[position] = static_cast<u16>(sources[index].distance);
            } else if (!is_match) {
                shared.bytes[position] = sources[index].value;
            }
            __syncwarp();
            if (lane == 0) {
                shared.starts[word] = matches;
            }
        }
    }
    __syncthreads();
    for (u32 position = threadIdx.x; position / kWarpSize * kWarpSize < size;
         position += blockDim.x) {
        if ((shared.starts[position / kWarpSize] >> lane & 1) == 0) {
            shared.distances[position] = 0;
        }
    }
    __syncthreads();
}

// Replaces the distance of each byte by the distance to its root. Returns the number of rounds.
__device__ inline u32 jump_to_roots(WideShared& shared, u32 size) {
    const u32 lane = lane_id();
    const u32 num_warps = blockDim.x / kWarpSize;
    const u32 num_words = (size + kWarpSize - 1) / kWarpSize;
    u32 num_rounds = 0;
    for (bool is_pending = true; __syncthreads_or(is_pending); ++num_rounds) {
        is_pending = false;
        for (u32 first = 0; first < num_words; first += num_warps * kWideBatch) {
            const u32 own = first + threadIdx.x / kWarpSize;
            u32 pending[kWideBatch];
            u32 distances[kWideBatch];
#pragma unroll
            for (u32 index = 0; index < kWideBatch; ++index) {
                const u32 word = own + index * num_warps;
                pending[index] = word < num_words ? shared.starts[word] : 0;
                if (pending[index] != 0) {
                    const u32 position = word * kWarpSize + lane;
                    const u32 distance = shared.distances[position];
                    distances[index] = distance + shared.distances[position - distance];
                }
            }
            __syncthreads();
#pragma unroll
            for (u32 index = 0; index < kWideBatch; ++index) {
                if (pending[index] == 0) {
                    continue;
                }
                const u32 word = own + index * num_warps;
                const u32 position = word * kWarpSize + lane;
                const bool has_moved = shared.distances[position] != distances[index];
                const u32 moved = __ballot_sync(kAllLanes, has_moved);
                shared.distances[position] = static_cast<u16>(distances[index]);
                if (lane == 0) {
                    shared.starts[word] = moved;
                }
                is_pending = is_pending || moved != 0;
            }
            __syncthreads();
        }
    }
    return num_rounds;
}

// Stores the output, four bytes per thread.
__device__ inline void store_bytes(const WideShared& shared, u8* output, u32 size) {
    for (u32 first = threadIdx.x * 4; first < size; first += blockDim.x * 4) {
        const u16* const distances = shared.distances + first;
        const u32 values = shared.bytes[first - distances[0]] |
                           shared.bytes[first + 1 - distances[1]] << 8 |
                           shared.bytes[first + 2 - distances[2]] << 16 |
                           static_cast<u32>(shared.bytes[first + 3 - distances[3]]) << 24;
        if (first + 4 <= size) {
            *reinterpret_cast<u32*>(output + first) = values;
        } else {
            for (u32 index = first; index < size; ++index) {
                output[index] = static_cast<u8>(values >> (index - first) * 8);
            }
        }
    }
}

// Writes the output of a block whose sequences are all laid out. `literals` may be at the end of
// the output.
__device__ inline void write_block(WideShared& shared, const BlockTask& task, const u8* literals) {
    find_last_starts(shared, task.output_size);
    expand_pieces(shared, task.output_size, literals);
    jump_to_roots(shared, task.output_size);
    store_bytes(shared, task.output, task.output_size);
}

}  // namespace gompfs

// Decodes one block of gompresso-bit with a CTA (wide_block.cuh).
//
// The 64 sub-blocks of a payload can only be decoded one symbol after another, so one warp decodes
// the sequences, as in bit_block.cuh, while another decodes the literals to the end of the output.
// Before that, all threads copy the payload to shared memory, where the two warps wait less for
// each load. Sequences are passed to the other warps through shared memory, as many at a time as
// fit beside the payload.
#pragma once

#include "codec/bit_block.cuh"
#include "codec/wide_block.cuh"
#include "shared/packed_sequence.h"

namespace gompfs {

// A payload above this size stays in device memory, to leave space for sequences.
constexpr u32 kWidePayloadSize = kWideBlockSize / 4 * 3;
constexpr u32 kPayloadPadding = 16;  // number of bytes that may be loaded past a payload

struct BitWideShared {
    WideShared block;
    TokenClass classes[kNumTokenSymbols];
    BitShared codes;
    BitStreams streams[kWarpSize];  // the sub-blocks of each lane
    bool is_open;
};

// Copies the payload to the memory for bytes of output. Returns the number of bytes copied: 0 if it
// is too large. Ends with a barrier.
__device__ inline u32 copy_payload(const BlockTask& task, WideShared& shared) {
    if (task.payload_size > kWidePayloadSize) {
        return 0;
    }
    const u32 size =
        (task.payload_size + 2 * kPayloadPadding - 1) / kPayloadPadding * kPayloadPadding;
    const uint4* const from = reinterpret_cast<const uint4*>(task.payload);
    uint4* const to = reinterpret_cast<uint4*>(shared.bytes);
    for (u32 index = threadIdx.x; index < size / sizeof(uint4); index += blockDim.x) {
        to[index] = from[index];
    }
    __syncthreads();
    return size;
}

// Reads the header and the codes with the first warp. Returns false in all threads if they are not
// valid. Ends with a barrier.
__device__ inline bool open_streams(const BlockTask& task, BitWideShared& shared) {
    if (threadIdx.x < kWarpSize) {
        BitStreams in;
        const bool is_open = open_payload(task, shared.codes, in);
        if (is_open) {
            shared.streams[lane_id()] = in;
        }
        if (lane_id() == 0) {
            shared.is_open = is_open;
        }
    }
    __syncthreads();
    return shared.is_open;
}

// Decodes the next sequences of the block with one warp, a row at a time.
__device__ inline void decode_sequences(BitStreams& in, const BitWideShared& shared, u32 first,
                                        u32 end, u64* sequences) {
    const u32 lane = lane_id();
    for (u32 row = first; row < end; row += kWarpSize) {
        const LaneSequence sequence =
            decode_sequence(in, load_sequence_bits(in), shared.codes, shared.classes,
                            row + lane < in.num_sequences);
        sequences[row - first + lane] =
            pack_sequence(sequence.literal_length, sequence.match_length, sequence.match_offset);
    }
}

// Lays out sequences that were decoded. The rows of sequences are those of the warps. Returns false
// in all threads if the block cannot hold them. Ends with a barrier.
__device__ inline bool lay_out_all(WideShared& shared, const u64* sequences, u32 count, u32 size,
                                   u32 num_literals) {
    for (u32 first = 0; first < count; first += blockDim.x) {
        const u32 index = first + threadIdx.x;
        const UnpackedSequence unpacked = unpack_sequence(index < count ? sequences[index] : 0);
        LaneSequence sequence{unpacked.literal_length, unpacked.match_length,
                              unpacked.match_offset};
        repeat_offset(sequence);
        if (!lay_out(shared, sequence, size, num_literals)) {
            return false;
        }
    }
    return true;
}

// Decodes one block. Returns whether the payload is valid, in all threads.
__device__ inline bool decode_bit_wide_block(const BlockTask& task, BitWideShared& shared) {
    begin_block(shared.block);
    const u32 copied = copy_payload(task, shared.block);
    BlockTask nearby = task;
    nearby.payload = copied == 0 ? task.payload : shared.block.bytes;
    if (!open_streams(nearby, shared)) {
        return false;
    }
    const u32 warp = threadIdx.x / kWarpSize;
    BitStreams in = shared.streams[lane_id()];
    u8* const literals = task.output + task.output_size - in.num_literals;
    u64* const sequences = reinterpret_cast<u64*>(shared.block.bytes + copied);
    const u32 capacity = (kWideBlockSize - copied) / sizeof(u64) / kWarpSize * kWarpSize;
    u32 first = 0;
    do {
        const u32 end = min(first + capacity, in.num_sequences);
        if (warp == 0) {
            decode_sequences(in, shared, first, end, sequences);
        } else if (warp == 1 && first == 0) {
            decode_literals(in, shared.codes.codes.literal_table, literals);
        }
        __syncthreads();
        if (!lay_out_all(shared.block, sequences, end - first, task.output_size, in.num_literals)) {
            return false;
        }
        first = end;
    } while (first < in.num_sequences);
    const bool has_ended = (warp != 0 || in.sequence_position == in.sequence_end) &&
                           (warp != 1 || in.literal_position == in.literal_end);
    if (__syncthreads_or(!has_ended) || shared.block.position != task.output_size ||
        shared.block.num_literals != in.num_literals) {
        return false;
    }
    write_block(shared.block, task, literals);
    return true;
}

// Shared memory of a CTA, in bytes.
constexpr unsigned kBitWideBytes = sizeof(BitWideShared);

}  // namespace gompfs

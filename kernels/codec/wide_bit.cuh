// Decodes one block of gompresso-bit with a CTA (wide_block.cuh).
//
// The 64 sub-blocks of a payload can only be decoded one symbol after another, so one warp decodes
// the sequences, as in bit_block.cuh, while another decodes the literals to device memory.
// These two are what a block waits for, so everything before them is done by more warps: all copy
// the payload to shared memory, where loads take less time, and three build a table each. A row
// takes two look-ups one after the other: the tables of tokens and of offsets have entries of 32
// bits that say all that follows from a symbol. Sequences are passed to the other warps through
// shared memory, as many at a time as fit beside the payload.
#pragma once

#include "codec/bit_block.cuh"
#include "codec/wide_block.cuh"
#include "shared/packed_sequence.h"

namespace gompfs {

// A payload above this size stays in device memory, to leave space for sequences.
constexpr u32 kWidePayloadSize = kWideBlockSize / 4 * 3;
constexpr u32 kPayloadPadding = 16;  // number of bytes that may be loaded past a payload

// An entry for a token has, from the lowest bit on: the size of the codeword, the extra bits of the
// literal length and of the match length (4 bits each), the base of the literal length (4), that of
// the match length (8), and the number of all bits (8).
// An entry for an offset has: the number of all bits (5), the extra bits (4; the codeword has the
// rest), and the base of the match offset; or kNoOffset.
constexpr u32 kNoOffset = 0xffffffff;

struct BitWideShared {
    WideShared block;
    u32 tokens[1 << kMaxTokenBits];
    u32 offsets[1 << kMaxOffsetBits];
    BitStreams streams[kWarpSize];  // the sub-blocks of each lane
};

// What is needed until the literals are decoded. It is where WideShared has `stored` later.
struct BitOpening {
    u16 literal_table[1 << kMaxLiteralBits];
    u16 token_table[1 << kMaxTokenBits];
    u16 offset_table[1 << kMaxOffsetBits];
    CodeScratch scratch[3];  // one for each warp that builds a table
    u8 lengths[kNumCodeLengths];
};
static_assert(sizeof(BitOpening) <= sizeof(WideShared::stored));

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

__device__ inline u32 token_entry(u32 symbol, u32 codeword_bits) {
    const u32 literal = symbol >> 5, match = symbol & 31;
    const u32 literal_bits = kLiteralClassExtraBits[literal];
    const u32 match_bits = kMatchClassExtraBits[match];
    return codeword_bits | literal_bits << 4 | match_bits << 8 | kLiteralClassBase[literal] << 12 |
           kMatchClassBase[match] << 16 | (codeword_bits + literal_bits + match_bits) << 24;
}

__device__ inline u32 offset_entry(u32 symbol, u32 codeword_bits) {
    // An offset of 0 stands for that of the previous sequence.
    const bool repeats = symbol == kOffsetSymbolRepeat;
    const u32 extra_bits = repeats ? 0 : (symbol - 1) / 2;
    const u32 base = repeats ? 0 : ((2 + (symbol - 1) % 2) << extra_bits) - 1;
    return (codeword_bits + extra_bits) | codeword_bits << 5 | base << 9;
}

// Builds the tables of the three codes, with a warp for each. Returns whether this warp's code is
// valid. Other warps do nothing, and return true.
__device__ inline bool build_tables(BitOpening& opening, u32 num_sequences, u32 num_literals,
                                    BitWideShared& shared) {
    const u32 lane = lane_id(), warp = threadIdx.x / kWarpSize;
    const u8* const token_lengths = opening.lengths + kNumLiteralSymbols;
    const u8* const offset_lengths = token_lengths + kNumTokenSymbols;
    if (warp == 0) {
        if (!build_decode_table<kMaxTokenBits>(token_lengths, kNumTokenSymbols, opening.scratch[0],
                                               opening.token_table)) {
            return false;
        }
        for (u32 index = lane; index < 1u << kMaxTokenBits; index += kWarpSize) {
            const u32 entry = opening.token_table[index];
            shared.tokens[index] = token_entry(entry & 255, entry >> 8 & 15);
        }
        return num_sequences == 0 || opening.token_table[0] != kNoCodeword;
    }
    if (warp == 1) {
        return build_decode_table<kMaxLiteralBits>(opening.lengths, kNumLiteralSymbols,
                                                   opening.scratch[1], opening.literal_table) &&
               (num_literals == 0 || opening.literal_table[0] != kNoCodeword);
    }
    if (warp == 2) {
        if (!build_decode_table<kMaxOffsetBits>(offset_lengths, kNumOffsetSymbols,
                                                opening.scratch[2], opening.offset_table)) {
            return false;
        }
        for (u32 index = lane; index < 1u << kMaxOffsetBits; index += kWarpSize) {
            const u32 entry = opening.offset_table[index];
            shared.offsets[index] =
                entry == kNoCodeword ? kNoOffset : offset_entry(entry & 255, entry >> 8);
        }
    }
    return true;
}

// Reads the header, the codes and the sizes of sub-blocks. Returns false in all threads if they are
// not valid. Ends with a barrier.
__device__ inline bool open_streams(const BlockTask& task, BitWideShared& shared, BitStreams& in) {
    BitOpening& opening = *reinterpret_cast<BitOpening*>(shared.block.stored);
    BitFields fields;
    if (!read_bit_header(task, in, fields)) {
        return false;
    }
    const u32 warp = threadIdx.x / kWarpSize;
    bool is_valid = true;
    if (warp == 0) {
        is_valid = read_code_lengths<kNumCodeLengths>(in.words, kBitHeaderSize * 8,
                                                      fields.code_lengths_size, opening.lengths,
                                                      opening.scratch[0], opening.token_table);
    } else if (warp == 3) {
        is_valid = locate_streams(fields, in);
        shared.streams[lane_id()] = in;
    }
    if (__syncthreads_or(!is_valid)) {
        return false;
    }
    is_valid = build_tables(opening, in.num_sequences, in.num_literals, shared);
    if (__syncthreads_or(!is_valid)) {
        return false;
    }
    in = shared.streams[lane_id()];
    return true;
}

// Decodes this lane's next sequence, as decode_sequence does.
__device__ inline LaneSequence decode_wide_sequence(BitStreams& in, const BitWideShared& shared) {
    u64 window = load_sequence_bits(in);
    const u32 token = shared.tokens[window & ((1 << kMaxTokenBits) - 1)];
    const u64 after = window >> (token >> 24);
    const u32 offset = shared.offsets[after & ((1 << kMaxOffsetBits) - 1)];
    const u32 literal_bits = token >> 4 & 15, match_bits = token >> 8 & 15;
    window >>= token & 15;
    LaneSequence sequence;
    sequence.literal_length = (token >> 12 & 15) + low_bits(window, literal_bits);
    window >>= literal_bits;
    const u32 match_base = token >> 16 & 255;
    sequence.match_length = match_base + low_bits(window, match_bits);
    sequence.match_offset = 0;
    in.sequence_position += token >> 24;
    if (match_base != 0) {
        const u32 all_bits = offset & 31, codeword_bits = offset >> 5 & 15;
        in.sequence_position += all_bits;
        sequence.match_offset =
            (offset >> 9) + low_bits(after >> codeword_bits, all_bits - codeword_bits);
        if (offset == kNoOffset) {
            sequence.match_offset = kMaxRowOutput;  // points before the start of any output
        }
    }
    return sequence;
}

// Decodes sequences `first` to `end` of the block with one warp, a row at a time.
__device__ inline void decode_sequences(BitStreams& in, const BitWideShared& shared, u32 first,
                                        u32 end, u64* sequences) {
    const u32 lane = lane_id();
    for (u32 row = first; row < end; row += kWarpSize) {
        if (row + lane < end) {
            const LaneSequence sequence = decode_wide_sequence(in, shared);
            sequences[row - first + lane] = pack_sequence(
                sequence.literal_length, sequence.match_length, sequence.match_offset);
        }
    }
}

// Lays out sequences that were decoded. The rows of sequences are those of the warps. Returns false
// in all threads if the block cannot hold them. Ends with a barrier.
__device__ inline bool lay_out_all(WideShared& shared, const u64* sequences, u32 count, u32 size,
                                   u32 num_literals) {
    for (u32 first = 0; first < count; first += kWideSequences * blockDim.x) {
        LaneSequence own[kWideSequences];
#pragma unroll
        for (u32 index = 0; index < kWideSequences; ++index) {
            const u32 number = first + index * blockDim.x + threadIdx.x;
            const UnpackedSequence unpacked =
                unpack_sequence(number < count ? sequences[number] : 0);
            own[index] = {unpacked.literal_length, unpacked.match_length, unpacked.match_offset};
            repeat_offset(own[index]);
        }
        if (!lay_out(shared, own, size, num_literals)) {
            return false;
        }
    }
    return true;
}

// Decodes one block to `target`. Returns whether the payload is valid, in all threads.
__device__ inline bool decode_bit_wide_block(const BlockTask& task, u8* target,
                                             BitWideShared& shared) {
    begin_block(shared.block);
    const u32 copied = copy_payload(task, shared.block);
    BlockTask nearby = task;
    nearby.payload = copied == 0 ? task.payload : shared.block.bytes;
    BitStreams in;
    if (!open_streams(nearby, shared, in)) {
        return false;
    }
    const u32 warp = threadIdx.x / kWarpSize;
    const BitOpening& opening = *reinterpret_cast<BitOpening*>(shared.block.stored);
    u8* const literals = task.output + task.output_size - in.num_literals;
    u64* const sequences = reinterpret_cast<u64*>(shared.block.bytes + copied);
    const u32 capacity = (kWideBlockSize - copied) / sizeof(u64) / kWarpSize * kWarpSize;
    u32 first = 0;
    do {
        const u32 end = min(first + capacity, in.num_sequences);
        if (warp == 0) {
            decode_sequences(in, shared, first, end, sequences);
        } else if (warp == 1 && first == 0) {
            decode_literals(in, opening.literal_table, literals);
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
    write_block(shared.block, task.output_size, literals, target);
    return true;
}

// Shared memory of a CTA, in bytes.
constexpr unsigned kBitWideBytes = sizeof(BitWideShared);

}  // namespace gompfs

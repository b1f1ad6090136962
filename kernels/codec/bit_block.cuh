// Decodes one block of gompresso-bit with one warp (Gompresso/Bit; Sitaridi et al., ICPP 2016,
// section IV).
//
// The Huffman-coded streams of a block are cut into 32 sequence sub-blocks and 32 literal
// sub-blocks; lane i decodes sub-block i of each kind. Sequence i belongs to sub-block i % 32, so
// in each row of 32 sequences lane i decodes sequence i. A block takes three steps: read the
// header, build the three decode tables and find the sub-blocks (open_payload); decode all literals
// to the end of the output (decode_literals); decode the sequences row by row and write the bytes
// of each row (row.cuh).
//
// Bit positions are clamped to the end of the stream before each load, so no lane reads more than a
// few bytes past the payload (batch.cuh says how many must be readable). After the last row every
// lane checks that its sub-blocks ended exactly where the payload says. With kHasDictionary, the
// block is of gompresso-bit-dictionary: there are more offset symbols, for matches whose offset has
// the bit kFromDictionary. Shared memory: the token classes, once per CTA, and one BitShared per
// warp.
#pragma once

#include "codec/batch.cuh"
#include "codec/huffman.cuh"
#include "codec/row.cuh"
#include "codec/sub_blocks.cuh"
#include "shared/dictionary_addresses.h"
#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

struct BitShared {
    u16 token_table[1 << kMaxTokenBits];
    u16 offset_table[1 << kMaxOffsetBits];
    // The first member is used until all literals are decoded, the second one after that.
    union {
        struct {
            u16 literal_table[1 << kMaxLiteralBits];
            CodeScratch scratch;
            u8 lengths[kMaxCodeLengths];
        } codes;
        RowShared row;
    };
};

// The lengths that a token symbol stands for: base value and number of extra bits of the literal
// length and of the match length.
struct TokenClass {
    u8 literal_base;
    u8 match_base;
    u8 literal_bits;
    u8 match_bits;
};

__device__ inline void fill_token_classes(TokenClass* classes) {
    for (u32 symbol = threadIdx.x; symbol < kNumTokenSymbols; symbol += blockDim.x) {
        classes[symbol] = {static_cast<u8>(kLiteralClassBase[symbol >> 5]),
                           static_cast<u8>(kMatchClassBase[symbol & 31]),
                           kLiteralClassExtraBits[symbol >> 5], kMatchClassExtraBits[symbol & 31]};
    }
    __syncthreads();
}

struct BitStreams {
    const u32* words;  // the payload as 32-bit words
    u32 end;           // of the stream, in bits from the payload's start
    u32 num_sequences;
    u32 num_literals;
    // This lane's sub-blocks, in bits from the payload's start.
    u32 sequence_position;
    u32 sequence_end;
    u32 literal_position;
    u32 literal_end;
};

// Decodes all literals to `literals`. Each lane decodes four codewords from one 64-bit load.
__device__ inline void decode_literals(BitStreams& in, const u16* table, u8* literals) {
    for (u32 first = lane_id(); first < in.num_literals; first += 4 * kWarpSize) {
        u64 window = load_bits(in.words, min(in.literal_position, in.end));
#pragma unroll
        for (u32 index = first; index < first + 4 * kWarpSize; index += kWarpSize) {
            if (index < in.num_literals) {
                const u32 entry = table[window & ((1 << kMaxLiteralBits) - 1)];
                literals[index] = static_cast<u8>(entry);
                window >>= entry >> 8;
                in.literal_position += entry >> 8;
            }
        }
    }
    __syncwarp();
}

// The fields of a header that are not in BitStreams.
struct BitFields {
    u32 sequence_width;
    u32 literal_width;
    u32 sequence_base;
    u32 literal_base;
    u32 code_lengths_size;
};

// Reads the header. Returns false if it is not valid.
__device__ inline bool read_bit_header(const BlockTask& task, BitStreams& in, BitFields& fields) {
    if (task.payload_size < kBitHeaderSize + kBitPadding) {
        return false;
    }
    const u32* header = reinterpret_cast<const u32*>(task.payload);
    const u32 fixed = header[0];
    const u32 group_size_log2 = fixed >> 8 & 255;
    in.words = header;
    in.num_sequences = header[1];
    in.num_literals = header[2];
    in.end = (task.payload_size - kBitPadding) * 8;
    fields = {fixed >> 16 & 255, fixed >> 24, header[3], header[4], header[5]};
    return (fixed & 255) <= kFlagDependencyElimination && group_size_log2 >= kMinGroupSizeLog2 &&
           group_size_log2 <= kMaxGroupSizeLog2 && fields.sequence_width <= kMaxSizeWidth &&
           fields.literal_width <= kMaxSizeWidth && in.num_literals <= task.output_size &&
           in.num_sequences <= task.output_size + (1u << group_size_log2) &&
           fields.code_lengths_size <= task.payload_size - kBitHeaderSize - kBitPadding &&
           fields.sequence_base <= in.end && fields.literal_base <= in.end;
}

// Finds the sub-blocks of the lanes of a warp. Returns false in all lanes if they are not valid.
__device__ inline bool locate_streams(const BitFields& fields, BitStreams& in) {
    const u32 sizes = (kBitHeaderSize + fields.code_lengths_size) * 8;
    const u32 start = sizes + kNumSubBlocks * (fields.sequence_width + fields.literal_width);
    if (start > in.end) {
        return false;
    }
    const u32 middle =
        locate_sub_blocks(in.words, sizes, fields.sequence_width, fields.sequence_base, start,
                          in.sequence_position, in.sequence_end);
    const u32 end = locate_sub_blocks(in.words, sizes + kNumSubBlocks * fields.sequence_width,
                                      fields.literal_width, fields.literal_base, middle,
                                      in.literal_position, in.literal_end);
    const bool ordered = in.sequence_end <= in.end && in.literal_end <= in.end;
    return __all_sync(kAllLanes, ordered) && in.end - end < 8;
}

// Reads the header, the code lengths and the sub-block sizes, and builds the decode tables. Returns
// false in all lanes if the payload is not valid.
template <bool kHasDictionary = false>
__device__ inline bool open_payload(const BlockTask& task, BitShared& shared, BitStreams& in) {
    BitFields fields;
    if (!read_bit_header(task, in, fields)) {
        return false;
    }
    u8* const lengths = shared.codes.lengths;
    CodeScratch& scratch = shared.codes.scratch;
    constexpr u32 kNumLengths = kHasDictionary ? kMaxCodeLengths : kNumCodeLengths;
    if (!read_code_lengths<kNumLengths>(in.words, kBitHeaderSize * 8, fields.code_lengths_size,
                                        lengths, scratch, shared.token_table)) {
        return false;
    }
    const u8* const token_lengths = lengths + kNumLiteralSymbols;
    const u8* const offset_lengths = token_lengths + kNumTokenSymbols;
    if (!build_decode_table<kMaxLiteralBits>(lengths, kNumLiteralSymbols, scratch,
                                             shared.codes.literal_table) ||
        !build_decode_table<kMaxTokenBits>(token_lengths, kNumTokenSymbols, scratch,
                                           shared.token_table) ||
        !build_decode_table<kMaxOffsetBits>(offset_lengths,
                                            kNumLengths - kNumLiteralSymbols - kNumTokenSymbols,
                                            scratch, shared.offset_table) ||
        (in.num_literals != 0 && shared.codes.literal_table[0] == kNoCodeword) ||
        (in.num_sequences != 0 && shared.token_table[0] == kNoCodeword)) {
        return false;
    }
    return locate_streams(fields, in);
}

// The next 64 bits of this lane's sequence sub-block.
__device__ inline u64 load_sequence_bits(const BitStreams& in) {
    return load_bits(in.words, min(in.sequence_position, in.end));
}

// Decodes this lane's sequence of a row from `window`; an empty sequence if is_active is false. A
// match_offset of 0 in the result means that the sequence repeats the match offset of the previous
// sequence.
template <bool kHasDictionary = false>
__device__ inline LaneSequence decode_sequence(BitStreams& in, u64 window, const BitShared& shared,
                                               const TokenClass* classes, bool is_active) {
    LaneSequence sequence{0, 0, 0};
    if (!is_active) {
        return sequence;
    }
    const u32 token = shared.token_table[window & ((1 << kMaxTokenBits) - 1)];
    const TokenClass lengths = classes[token & 255];
    window >>= token >> 8;
    sequence.literal_length = lengths.literal_base + low_bits(window, lengths.literal_bits);
    window >>= lengths.literal_bits;
    sequence.match_length = lengths.match_base + low_bits(window, lengths.match_bits);
    window >>= lengths.match_bits;
    in.sequence_position += (token >> 8) + lengths.literal_bits + lengths.match_bits;
    if (lengths.match_base != 0) {
        const u32 offset = shared.offset_table[window & ((1 << kMaxOffsetBits) - 1)];
        const u32 symbol = offset & 255;
        window >>= offset >> 8 & 15;
        in.sequence_position += offset >> 8;
        if (symbol != kOffsetSymbolRepeat) {
            const bool has_address = kHasDictionary && symbol >= kFirstDictionarySymbol;
            const u32 extra_bits = has_address ? dictionary_extra_bits(symbol) : (symbol - 1) / 2;
            const u32 base = has_address ? kFromDictionary + first_dictionary_address(symbol)
                                         : ((2 + (symbol - 1) % 2) << extra_bits) - 1;
            sequence.match_offset = base + low_bits(window, extra_bits);
            in.sequence_position += extra_bits;
        }
        if (offset == kNoCodeword) {
            sequence.match_offset = kMaxRowOutput;  // points before the start of any output
        }
    }
    return sequence;
}

// Replaces a match offset of 0 by the match offset of the nearest lower lane that has one.
// Addresses in a dictionary stay, and are not repeated.
template <bool kHasDictionary = false>
__device__ inline void repeat_offset(LaneSequence& sequence) {
    const int lane = lane_id();
    const bool has_address = kHasDictionary && sequence.match_offset >= kFromDictionary;
    const u32 own = __ballot_sync(kAllLanes, sequence.match_offset != 0 && !has_address);
    const u32 below = own & (lanes_below(lane) | 1u << lane);
    const u32 offset =
        __shfl_sync(kAllLanes, sequence.match_offset, below == 0 ? 0 : 31 - __clz(below));
    sequence.match_offset = has_address ? sequence.match_offset : below == 0 ? 0 : offset;
}

// Decodes one block. `rows` writes the output (for example PieceRows).
template <bool kHasDictionary = false, class Rows>
__device__ inline bool decode_bit_block(const BlockTask& task, BitShared& shared,
                                        const TokenClass* classes, Rows& rows) {
    BitStreams in;
    if (!open_payload<kHasDictionary>(task, shared, in)) {
        return false;
    }
    BlockOutput out{task.output, task.output_size};
    out.num_literals = in.num_literals;
    decode_literals(in, shared.codes.literal_table, out.bytes + out.size - in.num_literals);
    rows.begin();
    u64 bits = load_sequence_bits(in);
    for (u32 first = 0; first < in.num_sequences; first += kWarpSize) {
        LaneSequence sequence = decode_sequence<kHasDictionary>(
            in, bits, shared, classes, first + lane_id() < in.num_sequences);
        bits = load_sequence_bits(in);  // of the next row, loaded while this row is written
        repeat_offset<kHasDictionary>(sequence);
        if (!rows.write(out, sequence)) {
            return false;
        }
    }
    const bool ended =
        in.sequence_position == in.sequence_end && in.literal_position == in.literal_end;
    return __all_sync(kAllLanes, ended) && out.position == out.size && out.num_literals == 0;
}

// Dynamic shared memory, in bytes.
constexpr unsigned kBitBytesPerCta = kNumTokenSymbols * sizeof(TokenClass);
constexpr unsigned kBitBytesPerWarp = sizeof(BitShared);

}  // namespace gompfs

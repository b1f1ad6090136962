// Encodes a block as a payload of gompresso-bit, with the result of native/codec/bit_encoder.cpp.
// The threads of a CTA work together.
//
// 1. The literals are copied to working memory, and all symbols are counted (count_symbols).
// 2. Three warps build the three codes (build_codes). One warp finds how the code lengths are
//    written (length_row.cuh).
// 3. Each lane of each warp adds up the bits of its items (measure). Sums of these are the sizes of
//    the sub-blocks, and prefix sums tell each lane where its bits begin in its sub-block.
// 4. If the payload is smaller than the content, all lanes write their bits (write_payload).
#pragma once

#include "encode/batch.cuh"
#include "encode/code_lengths.cuh"
#include "encode/lane_bits.cuh"
#include "encode/length_row.cuh"
#include "shared/format_constants.h"

namespace gompfs {

constexpr u32 kNumCodes = 3;
static_assert(kNumCodes <= kEncodeWarps, "a warp builds at most one code");
constexpr u32 kFirstToken = kNumLiteralSymbols;
constexpr u32 kFirstOffset = kNumLiteralSymbols + kNumTokenSymbols;
// The symbol after the last: a sequence without a match has it in place of an offset. It has no
// codeword.
constexpr u32 kNoOffset = kNumSymbols;
constexpr u32 kMatchClasses = 512;  // size of the table of classes

struct BitEncodeShared {
    u8 match_class[kMatchClasses];  // by match length
    u8 lengths[kNumSymbols];
    u32 sums[kEncodeWarps];
    LengthRowShape row_shape;
    LengthRow row;
    // The codewords replace the counts.
    union {
        u32 counts[kNumSymbols + 1];
        Codeword codewords[kNumSymbols + 1];
    };
    // The codes are built before the sub-blocks are measured.
    union {
        TreeScratch trees[kNumCodes];
        struct {
            u32 sequences[kEncodeWarps][kWarpSize];
            u32 literals[kEncodeWarps][kWarpSize];
        } bits;
    };
};

constexpr unsigned kEncodeBitBytes = sizeof(BitEncodeShared);

// Fills the table of match classes, and clears the counts.
__device__ inline void prepare(BitEncodeShared& shared) {
    for (u32 length = threadIdx.x; length < kMatchClasses; length += kEncodeThreads) {
        u32 found = 0;
        for (u32 each = 1; each < kNumMatchClasses; ++each) {
            found += kMatchClassBase[each] <= length;
        }
        shared.match_class[length] = static_cast<u8>(found);
    }
    for (u32 symbol = threadIdx.x; symbol <= kNumSymbols; symbol += kEncodeThreads) {
        shared.counts[symbol] = 0;
    }
    __syncthreads();
}

// A symbol of one of the codes, and the extra bits after its codeword.
struct Field {
    u32 symbol;
    u32 extra;
    u32 num_extra_bits;
};

// A sequence as its sub-block contains it.
struct SequenceFields {
    Field token;
    Field offset;
};

// A match offset that does not repeat the one before. Its octave is that of offset + 1.
__device__ inline Field offset_field(u32 match_offset) {
    const u32 octave = 31 - __clz(match_offset + 1);
    const u32 num_extra_bits = octave - 1;
    const u32 half = (match_offset + 1) >> num_extra_bits & 1;
    return {kFirstOffset + 1 + 2 * num_extra_bits + half,
            (match_offset + 1) & ((1u << num_extra_bits) - 1), num_extra_bits};
}

// The fields of the sequence of each lane of a row. All lanes call it.
__device__ inline SequenceFields fields_of(const UnpackedSequence& sequence,
                                           const u8* match_classes) {
    u32 literal_class = 0;
#pragma unroll
    for (u32 each = 1; each < kNumLiteralClasses; ++each) {
        literal_class += kLiteralClassBase[each] <= sequence.literal_length;
    }
    const bool has_match = sequence.match_length != 0;
    const u32 match_class = match_classes[min(sequence.match_length, kMatchClasses - 1)];
    const u32 literal_bits = kLiteralClassExtraBits[literal_class];
    const u32 literal_extra = sequence.literal_length - kLiteralClassBase[literal_class];
    const u32 match_extra = sequence.match_length - kMatchClassBase[match_class];
    const Field token = {kFirstToken + (literal_class << 5 | match_class),
                         literal_extra | match_extra << literal_bits,
                         literal_bits + kMatchClassExtraBits[match_class]};
    // The nearest lower lane with a match.
    const u32 below = __ballot_sync(kAllLanes, has_match) & lanes_below(lane_id());
    const u32 last_offset =
        __shfl_sync(kAllLanes, sequence.match_offset, below == 0 ? 0 : 31 - __clz(below));
    if (!has_match) {
        return {token, {kNoOffset, 0, 0}};
    }
    const bool repeats = below != 0 && last_offset == sequence.match_offset;
    return {token, repeats ? Field{kFirstOffset + kOffsetSymbolRepeat, 0, 0}
                           : offset_field(sequence.match_offset)};
}

// Copies the literals to task.literals, and counts all symbols.
__device__ inline void count_symbols(const EncodeTask& task, WarpStart at,
                                     BitEncodeShared& shared) {
    for_each_row(task.sequences, range_of_warp(task.num_sequences), [&](u64 packed, bool exists) {
        const UnpackedSequence sequence = unpack_sequence(packed);
        const SequenceFields fields = fields_of(sequence, shared.match_class);
        if (exists) {
            atomicAdd(&shared.counts[fields.token.symbol], 1u);
        }
        if (sequence.match_length != 0) {
            atomicAdd(&shared.counts[fields.offset.symbol], 1u);
        }
        for_each_literal(task.content, sequence, at, [&](u32 index, u8 byte) {
            task.literals[index] = byte;
            atomicAdd(&shared.counts[byte], 1u);
        });
    });
    __syncthreads();
}

// Builds the three codes, and finds how their lengths are written.
__device__ inline void build_codes(BitEncodeShared& shared) {
    const u32 code = warp_id();
    if (code < kNumCodes) {
        const u32 first = code == 0 ? 0 : code == 1 ? kFirstToken : kFirstOffset;
        const u32 end = code == 0 ? kFirstToken : code == 1 ? kFirstOffset : kNumSymbols;
        TreeScratch& scratch = shared.trees[code];
        u8* const lengths = shared.lengths + first;
        limited_code_lengths(shared.counts + first, end - first,
                             first == kFirstOffset ? kMaxOffsetBits : kMaxTokenBits, lengths,
                             scratch);
        assign_codewords(lengths, end - first, scratch.leaves, shared.codewords + first);
    }
    if (threadIdx.x == 0) {
        shared.codewords[kNoOffset] = {0, 0};
    }
    __syncthreads();
    if (warp_id() == 0) {
        const LengthRowShape shape = shape_length_row(shared.lengths, shared.row, shared.trees[0]);
        if (lane_id() == 0) {
            shared.row_shape = shape;
        }
    }
    __syncthreads();
}
static_assert(kMaxLiteralBits == kMaxTokenBits && kMaxTokenBits <= static_cast<int>(kMaxLimit));

// Stores the number of bits of the items of each lane.
__device__ inline void measure(const EncodeTask& task, u32 num_literals, BitEncodeShared& shared) {
    u32 sequence_bits = 0, literal_bits = 0;
    for_each_row(task.sequences, range_of_warp(task.num_sequences), [&](u64 packed, bool exists) {
        const SequenceFields fields = fields_of(unpack_sequence(packed), shared.match_class);
        if (exists) {
            sequence_bits +=
                shared.codewords[fields.token.symbol].num_bits + fields.token.num_extra_bits +
                shared.codewords[fields.offset.symbol].num_bits + fields.offset.num_extra_bits;
        }
    });
    for_each_row(task.literals, range_of_warp(num_literals), [&](u8 literal, bool exists) {
        literal_bits += exists ? shared.lengths[literal] : 0;
    });
    shared.bits.sequences[warp_id()][lane_id()] = sequence_bits;
    shared.bits.literals[warp_id()][lane_id()] = literal_bits;
    __syncthreads();
}

// The bits that this lane writes: of the sub-block of the lane, the part of this warp. Positions
// are in bits from the start of the sub-blocks.
struct LaneRange {
    u32 size;  // of the sub-block
    u32 begin, end;
    u32 base;   // the smallest size of a sub-block
    u32 width;  // of the numbers that give the sizes
    u32 all;    // the bits of all sub-blocks
};

__device__ inline LaneRange range_of_lane(const u32 (&bits)[kEncodeWarps][kWarpSize]) {
    const u32 lane = lane_id();
    LaneRange range = {};
#pragma unroll
    for (u32 warp = 0; warp < kEncodeWarps; ++warp) {
        range.begin += warp < warp_id() ? bits[warp][lane] : 0;
        range.size += bits[warp][lane];
    }
    const u32 through = inclusive_sum(range.size, lane);
    range.begin += through - range.size;
    range.end = range.begin + bits[warp_id()][lane];
    range.all = __shfl_sync(kAllLanes, through, kWarpSize - 1);
    u32 smallest = range.size, largest = range.size;
    for (int step = 1; step < kWarpSize; step *= 2) {
        smallest = min(smallest, __shfl_sync(kAllLanes, smallest, (lane + step) % kWarpSize));
        largest = max(largest, __shfl_sync(kAllLanes, largest, (lane + step) % kWarpSize));
    }
    range.base = smallest;
    range.width = 32 - __clz(largest - smallest);
    return range;
}

// Positions in the payload, in bits.
struct BitLayout {
    u32 fields;             // of the sizes of the sub-blocks
    u32 sequences;          // of the sequence sub-blocks
    u32 literals;           // of the literal sub-blocks
    u32 end;                // of the stream
    u32 code_lengths_size;  // in bytes
    u32 payload_size;       // in bytes
};

__device__ inline BitLayout lay_out(const LengthRowShape& row, const LaneRange& sequences,
                                    const LaneRange& literals) {
    BitLayout layout;
    layout.code_lengths_size = (row.num_bits + 7) / 8;
    layout.fields = (kBitHeaderSize + layout.code_lengths_size) * 8;
    layout.sequences = layout.fields + kNumSubBlocks * (sequences.width + literals.width);
    layout.literals = layout.sequences + sequences.all;
    layout.end = layout.literals + literals.all;
    layout.payload_size = (layout.end + 7) / 8 + kBitPadding;
    return layout;
}

__device__ inline void clear_words(u32* words, u32 begin, u32 end) {
    for (u32 word = begin + threadIdx.x; word < end; word += kEncodeThreads) {
        words[word] = 0;
    }
}

__device__ inline void put_field(LaneBits& out, const Field& field, const Codeword* codewords) {
    const Codeword codeword = codewords[field.symbol];
    out.put(codeword.bits | field.extra << codeword.num_bits,
            codeword.num_bits + field.num_extra_bits);
}

// Writes the items of this lane.
__device__ inline void write_items(const EncodeTask& task, u32 num_literals, u32 sequences,
                                   u32 literals, const BitEncodeShared& shared) {
    u32* const words = reinterpret_cast<u32*>(task.payload);
    LaneBits sequence_bits(words, sequences);
    for_each_row(task.sequences, range_of_warp(task.num_sequences), [&](u64 packed, bool exists) {
        const SequenceFields fields = fields_of(unpack_sequence(packed), shared.match_class);
        if (exists) {
            put_field(sequence_bits, fields.token, shared.codewords);
            put_field(sequence_bits, fields.offset, shared.codewords);
        }
    });
    sequence_bits.finish();
    LaneBits literal_bits(words, literals);
    for_each_row(task.literals, range_of_warp(num_literals), [&](u8 literal, bool exists) {
        if (exists) {
            const Codeword codeword = shared.codewords[literal];
            literal_bits.put(codeword.bits, codeword.num_bits);
        }
    });
    literal_bits.finish();
}

// Writes the fixed fields of the header, and the sizes of the sub-blocks. One warp calls it.
__device__ inline void write_fields(const EncodeBatch& batch, const EncodeTask& task,
                                    u32 num_literals, const BitLayout& layout,
                                    const LaneRange& sequences, const LaneRange& literals) {
    u32* const words = reinterpret_cast<u32*>(task.payload);
    const u32 lane = lane_id();
    if (lane == 0) {
        words[0] = batch.flags | sequences.width << 16 | literals.width << 24;
        words[1] = task.num_sequences;
        words[2] = num_literals;
        words[3] = sequences.base;
        words[4] = literals.base;
        words[5] = layout.code_lengths_size;
    }
    LaneBits of_sequence(words, layout.fields + lane * sequences.width);
    of_sequence.put(sequences.size - sequences.base, sequences.width);
    of_sequence.finish();
    LaneBits of_literal(words,
                        layout.fields + kNumSubBlocks * sequences.width + lane * literals.width);
    of_literal.put(literals.size - literals.base, literals.width);
    of_literal.finish();
}

// Writes the payload unless it would not be smaller than the content. Returns its size, or 0.
__device__ inline u32 write_payload(const EncodeBatch& batch, const EncodeTask& task,
                                    u32 num_literals, BitEncodeShared& shared) {
    const LaneRange sequences = range_of_lane(shared.bits.sequences);
    const LaneRange literals = range_of_lane(shared.bits.literals);
    const BitLayout layout = lay_out(shared.row_shape, sequences, literals);
    if (layout.payload_size >= task.size) {
        return 0;
    }
    u32* const words = reinterpret_cast<u32*>(task.payload);
    clear_words(words, kBitHeaderSize / 4, layout.sequences / 32 + 1);
    clear_words(words, layout.end / 32, (layout.payload_size + 3) / 4);
    clear_edges(words, layout.sequences + sequences.begin, layout.sequences + sequences.end);
    clear_edges(words, layout.literals + literals.begin, layout.literals + literals.end);
    __syncthreads();
    if (warp_id() == 0) {
        write_fields(batch, task, num_literals, layout, sequences, literals);
    } else if (warp_id() == 1) {
        write_length_row(shared.lengths, shared.row_shape.num_runs, shared.row, words,
                         kBitHeaderSize * 8);
    }
    write_items(task, num_literals, layout.sequences + sequences.begin,
                layout.literals + literals.begin, shared);
    return layout.payload_size;
}

__device__ inline void encode_bit_block(const EncodeBatch& batch, BitEncodeShared& shared) {
    const EncodeTask task = task_of_cta(batch);
    prepare(shared);
    const WarpStart start = find_start(task, shared.sums);
    u32 size = 0;
    if (start.is_sound) {
        count_symbols(task, start, shared);
        build_codes(shared);
        measure(task, start.num_literals, shared);
        size = write_payload(batch, task, start.num_literals, shared);
    }
    if (threadIdx.x == 0) {
        finish_block(batch, task.index, size, start.is_sound ? kEncodeOk : kEncodeFailed);
    }
}

}  // namespace gompfs

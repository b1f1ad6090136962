// Canonical Huffman codes of limited length: reads the code lengths of a payload and builds decode
// tables. All lanes of a warp work together.
//
// A decode table has 2^max_bits entries, indexed by the next max_bits bits of the stream; each
// entry holds a symbol and the length of its codeword, so one lookup decodes one symbol (the
// limited-length tables of Gompresso; Sitaridi et al., ICPP 2016, section 3). The table is built in
// three steps: count the symbols of each length (shape_code), sort the symbols by codeword
// (sort_symbols), and fill the table (fill_table). Codes that are over-subscribed or incomplete are
// refused; the only incomplete codes allowed are that of a single symbol, whose codeword has one
// bit, and the empty code.
#pragma once

#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

// The number of code lengths of a payload, with and without the symbols of a dictionary.
constexpr int kNumCodeLengths = kNumLiteralSymbols + kNumTokenSymbols + kNumOffsetSymbols;
constexpr int kMaxCodeLengths = kNumCodeLengths + kNumDictionarySymbols;
// An entry has the symbol in its low byte and the codeword's length above. kNoCodeword fills the
// table of a code without symbols.
constexpr u16 kNoCodeword = 0xffff;

// Working memory for building tables, in shared memory.
struct CodeScratch {
    u32 counts[kWarpSize];  // per length: number of symbols, then index of the next symbol in
                            // `sorted`
    u8 sorted[kNumLiteralSymbols];  // symbols in the order of their codewords
};

// The codewords of one length; lane l holds length l. Codewords are compared as numbers of kMaxBits
// bits whose first bit is the highest: a number that begins with a codeword of length l or less is
// below `limit`. `end_index` is the index in CodeScratch::sorted after the last symbol of this
// length.
struct LengthShape {
    u32 limit;
    u32 end_index;
    u32 num_symbols;  // of the whole code; the same in all lanes
    bool decodable;   // whether the lengths form a code that can be decoded; the same in all lanes
};

// Counts the symbols of each length. `lengths` is in shared memory.
template <int kMaxBits>
__device__ inline LengthShape shape_code(const u8* lengths, int num_lengths, CodeScratch& scratch) {
    const int lane = lane_id();
    scratch.counts[lane] = 0;
    __syncwarp();
    bool in_bounds = true;
    for (int symbol = lane; symbol < num_lengths; symbol += kWarpSize) {
        const u32 length = lengths[symbol];
        in_bounds = in_bounds && length <= kMaxBits;
        if (length != 0 && length <= kMaxBits) {
            atomicAdd(&scratch.counts[length], 1u);
        }
    }
    __syncwarp();
    constexpr u32 kIndexBits = 10;
    const u32 count = scratch.counts[lane];
    const u32 codewords = lane <= kMaxBits ? count << (kMaxBits - lane) : 0;
    const u32 through = inclusive_sum(codewords << kIndexBits | count, lane);
    const u32 all = __shfl_sync(kAllLanes, through, kWarpSize - 1);
    const u32 end_index = low_bits(through, kIndexBits);
    const u32 num_symbols = low_bits(all, kIndexBits);
    const u32 num_codewords = all >> kIndexBits;
    scratch.counts[lane] = end_index - count;
    const bool lone = num_symbols == 1 && num_codewords == 1u << (kMaxBits - 1);
    const bool complete = num_symbols == 0 || lone || num_codewords == 1u << kMaxBits;
    return {through >> kIndexBits, end_index, num_symbols,
            __all_sync(kAllLanes, in_bounds) && complete};
}

// Sorts the symbols by length, and symbols of equal length by value. The code must be decodable.
__device__ inline void sort_symbols(const u8* lengths, int num_lengths, CodeScratch& scratch) {
    const int lane = lane_id();
    for (int first = 0; first < num_lengths; first += kWarpSize) {
        const u32 length = first + lane < num_lengths ? lengths[first + lane] : 0;
        const u32 same = __match_any_sync(kAllLanes, length);
        const u32 index = scratch.counts[length] + __popc(same & lanes_below(lane));
        __syncwarp();
        if (length != 0) {
            scratch.sorted[index] = static_cast<u8>(first + lane);
            if (same >> lane == 1) {  // the last lane with this length
                scratch.counts[length] = index + 1;
            }
        }
        __syncwarp();
    }
}

// Fills the table of a complete code. Each lane writes the entries of a range of consecutive
// codewords (first bit highest); the table is indexed by the reversed bits.
template <int kMaxBits>
__device__ inline void fill_table(const u8* lengths, const LengthShape& shape,
                                  const CodeScratch& scratch, u16* table) {
    constexpr u32 kPerLane = (1u << kMaxBits) / kWarpSize;
    const u32 first = lane_id() * kPerLane;
    u32 bits = 1;
    u32 start = 0;
    u32 index = 0;
#pragma unroll
    for (int shorter = 1; shorter < kMaxBits; ++shorter) {
        const u32 limit = __shfl_sync(kAllLanes, shape.limit, shorter);
        const u32 end_index = __shfl_sync(kAllLanes, shape.end_index, shorter);
        const bool longer = first >= limit;
        bits = longer ? shorter + 1 : bits;
        start = longer ? limit : start;
        index = longer ? end_index : index;
    }
    index += (first - start) >> (kMaxBits - bits);
    u32 left = (1u << (kMaxBits - bits)) - ((first - start) & ((1u << (kMaxBits - bits)) - 1));
    u32 entry = bits << 8 | scratch.sorted[index];
    for (u32 codeword = first; codeword < first + kPerLane; ++codeword, --left) {
        if (left == 0) {
            const u32 symbol = scratch.sorted[++index];
            const u32 length = lengths[symbol];
            entry = length << 8 | symbol;
            left = 1u << (kMaxBits - length);
        }
        table[__brev(codeword) >> (32 - kMaxBits)] = static_cast<u16>(entry);
    }
}

// Fills a table of 2^kMaxBits entries, indexed by the next bits of a stream. Returns false in all
// lanes if the lengths do not form a code. Not inlined: inlined, it would take registers away from
// the loop over rows.
template <int kMaxBits>
[[gnu::noinline]] __device__ bool build_decode_table(const u8* lengths, int num_lengths,
                                                     CodeScratch& scratch, u16* table) {
    const LengthShape shape = shape_code<kMaxBits>(lengths, num_lengths, scratch);
    if (!shape.decodable) {
        return false;
    }
    __syncwarp();
    sort_symbols(lengths, num_lengths, scratch);
    if (shape.num_symbols > 1) {
        fill_table<kMaxBits>(lengths, shape, scratch, table);
    } else {
        // A lone symbol fills the whole table. Without symbols nothing can be decoded.
        const u16 entry =
            shape.num_symbols == 1 ? static_cast<u16>(1 << 8 | scratch.sorted[0]) : kNoCodeword;
        for (u32 index = lane_id(); index < 1u << kMaxBits; index += kWarpSize) {
            table[index] = entry;
        }
    }
    __syncwarp();
    return true;
}

// A symbol of the code in which code lengths are stored, as decoded by one lane.
struct LengthSymbol {
    bool exists;
    bool repeats;  // whether it repeats the previous length
    u32 length;
    u32 run;   // number of lengths that it stands for
    u32 used;  // number of bits that it takes
};

__device__ inline LengthSymbol read_length_symbol(const u16* table, u32 window) {
    const u32 entry = table[window & ((1 << kMaxLengthBits) - 1)];
    const u32 symbol = entry & 255;
    const u32 codeword_bits = entry >> 8 & 15;
    const u32 extra = window >> codeword_bits;
    const bool is_length = symbol < kLengthSymbolRepeat;
    const bool repeats = symbol == kLengthSymbolRepeat;
    const bool many = symbol == kLengthSymbolManyZeros;
    const u32 extra_bits = is_length ? 0 : repeats ? 2 : many ? 7 : 3;
    const u32 run = is_length ? 1 : (many ? 11 : 3) + low_bits(extra, extra_bits);
    return {entry != kNoCodeword, repeats, is_length ? symbol : 0, run, codeword_bits + extra_bits};
}

// Reads the kNumLengths lengths of all three codes into shared memory. The lengths are stored from
// bit `position` on, in `size` bytes. Returns false in all lanes if they are not valid or do not
// end in the last of these bytes. `table` has 2^kMaxLengthBits entries.
//
// The symbols are stored one after another, and only the end of one tells where the next begins. So
// each lane decodes the symbol that would begin at its own bit of the next 32 bits; following the
// chain from the first bit then selects the symbols that really begin there.
template <u32 kNumLengths>
[[gnu::noinline]] __device__ bool read_code_lengths(const u32* words, u32 position, u32 size,
                                                    u8* lengths, CodeScratch& scratch, u16* table) {
    const int lane = lane_id();
    const u32 end = position + size * 8;
    if (lane < kNumLengthSymbols) {
        lengths[lane] = static_cast<u8>(
            low_bits(load_bits(words, position + lane * kLengthFieldBits), kLengthFieldBits));
    }
    __syncwarp();
    if (!build_decode_table<kMaxLengthBits>(lengths, kNumLengthSymbols, scratch, table)) {
        return false;
    }
    for (u32 index = lane; index < kNumLengths; index += kWarpSize) {
        lengths[index] = 0;
    }
    __syncwarp();
    position += kNumLengthSymbols * kLengthFieldBits;
    u32 before = 0;
    for (u32 index = 0; index < kNumLengths;) {
        const u32 window = static_cast<u32>(load_bits(words, position + lane));
        LengthSymbol symbol = read_length_symbol(table, window);
        u32 begins = 0;
        u32 next = 0;
        while (next < kWarpSize) {
            begins |= 1u << next;
            next += max(__shfl_sync(kAllLanes, symbol.used, next), 1u);
        }
        const u32 run = begins >> lane & 1 ? symbol.run : 0;
        const u32 through = index + inclusive_sum(run, lane);
        const bool counts = run != 0 && through - run < kNumLengths;
        const u32 counting = __ballot_sync(kAllLanes, counts);
        const bool valid =
            symbol.exists && through <= kNumLengths && position + lane + symbol.used <= end;
        if (__any_sync(kAllLanes, counts && !valid)) {
            __syncwarp();  // the lengths of the next block come after those of this one
            return false;
        }
        // A repeated length is that of the nearest previous symbol that does not repeat.
        const u32 own = __ballot_sync(kAllLanes, counts && !symbol.repeats);
        const u32 below = own & lanes_below(lane);
        const u32 nearest =
            __shfl_sync(kAllLanes, symbol.length, below == 0 ? 0 : 31 - __clz(below));
        const u32 length = symbol.repeats ? (below == 0 ? before : nearest) : symbol.length;
        for (u32 at = through - run; counts && length != 0 && at < through; ++at) {
            lengths[at] = static_cast<u8>(length);
        }
        const int last = 31 - __clz(counting);
        before = __shfl_sync(kAllLanes, length, last);
        index = __shfl_sync(kAllLanes, through, last);
        position += last + __shfl_sync(kAllLanes, symbol.used, last);
    }
    __syncwarp();
    return end - position < 8;
}

}  // namespace gompfs

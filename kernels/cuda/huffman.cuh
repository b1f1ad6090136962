// Canonical codes of limited length: reading their lengths and building decode tables, all lanes
// together.
#pragma once

#include "format_constants.h"
#include "warp.cuh"

namespace gompfs {

constexpr int kNumCodeLengths = kNumLiteralSymbols + kNumTokenSymbols + kNumOffsetSymbols;
// Decode tables hold a symbol in the low byte and the codeword's length above it.
constexpr u16 kNoCodeword = 0xffff;

// Reads bits of a payload in order; every lane has its own copy of the same state.
struct CommonBits {
    const u32* words;
    u32 position;  // in bits

    __device__ u32 peek(u32 count) const { return low_bits(load_bits(words, position), count); }
    __device__ u32 take(u32 count) {
        const u32 value = peek(count);
        position += count;
        return value;
    }
};

// What canonical codewords look like, length by length. A codeword of length k, with its first bit
// highest and at the top of max_bits bits, lies below limit[k] and not below limit[k - 1].
template <int kMaxBits>
struct CodeShape {
    u32 limit[kMaxBits + 1];
    u32 first[kMaxBits + 1];  // the place of the first symbol of each length in their sorted row
    u32 num_symbols;
    bool decodable;
};

// lengths are in shared memory; sorted gets the symbols in the order of their codewords.
template <int kMaxBits>
__device__ inline CodeShape<kMaxBits> sort_symbols(const u8* lengths, int num_lengths, u8* sorted) {
    const int lane = lane_id();
    CodeShape<kMaxBits> shape;
    u32 count[kMaxBits + 1] = {};
    bool in_bounds = true;
    for (int first = 0; first < num_lengths; first += kWarpSize) {
        const u32 length = first + lane < num_lengths ? lengths[first + lane] : 0;
        in_bounds = in_bounds && length <= kMaxBits;
#pragma unroll
        for (int bits = 1; bits <= kMaxBits; ++bits) {
            count[bits] += __popc(__ballot_sync(kAllLanes, length == bits));
        }
    }
    shape.limit[0] = shape.first[0] = 0;
    u32 place = 0;
#pragma unroll
    for (int bits = 1; bits <= kMaxBits; ++bits) {
        shape.first[bits] = place;
        place += count[bits];
        shape.limit[bits] = shape.limit[bits - 1] + (count[bits] << (kMaxBits - bits));
    }
    shape.num_symbols = place;
    const bool lone = place == 1 && count[1] == 1;
    shape.decodable = __all_sync(kAllLanes, in_bounds) &&
                      (place == 0 || lone || shape.limit[kMaxBits] == 1u << kMaxBits);
    u32 next[kMaxBits + 1];
#pragma unroll
    for (int bits = 1; bits <= kMaxBits; ++bits) {
        next[bits] = shape.first[bits];
    }
    for (int first = 0; first < num_lengths && shape.decodable; first += kWarpSize) {
        const u32 length = first + lane < num_lengths ? lengths[first + lane] : 0;
#pragma unroll
        for (int bits = 1; bits <= kMaxBits; ++bits) {
            const u32 same = __ballot_sync(kAllLanes, length == bits);
            if (length == bits) {
                sorted[next[bits] + __popc(same & lanes_below(lane))] =
                    static_cast<u8>(first + lane);
            }
            next[bits] += __popc(same);
        }
    }
    __syncwarp();
    return shape;
}

// Fills a table of 2^kMaxBits entries, indexed by the next bits of a stream. False in all lanes
// where the lengths make no code. scratch has room for all symbols.
template <int kMaxBits>
__device__ inline bool build_decode_table(const u8* lengths, int num_lengths, u8* scratch,
                                          u16* table) {
    const CodeShape<kMaxBits> shape = sort_symbols<kMaxBits>(lengths, num_lengths, scratch);
    if (!shape.decodable) {
        return false;
    }
    for (u32 index = lane_id(); index < 1u << kMaxBits; index += kWarpSize) {
        const u32 codeword = __brev(index) >> (32 - kMaxBits);
        u32 bits = 1;
        u32 start = 0;
        u32 place = 0;
#pragma unroll
        for (int shorter = 1; shorter < kMaxBits; ++shorter) {
            const bool longer = codeword >= shape.limit[shorter];
            bits = longer ? shorter + 1 : bits;
            start = longer ? shape.limit[shorter] : start;
            place = longer ? shape.first[shorter + 1] : place;
        }
        place += (codeword - start) >> (kMaxBits - bits);
        // A lone symbol takes the whole table; without symbols, nothing can be decoded.
        u16 entry = kNoCodeword;
        if (shape.num_symbols == 1) {
            entry = static_cast<u16>(1 << 8 | scratch[0]);
        } else if (shape.num_symbols != 0) {
            entry = static_cast<u16>(bits << 8 | scratch[place]);
        }
        table[index] = entry;
    }
    __syncwarp();
    return true;
}

// Reads the lengths of all codes into shared memory. All lanes follow the same bits. False in all
// lanes where they are not valid or do not end in the last byte of size bytes from position on.
// table has 2^kMaxLengthBits entries.
__device__ inline bool read_code_lengths(const u32* words, u32 position, u32 size, u8* lengths,
                                         u8* scratch, u16* table) {
    const int lane = lane_id();
    const u32 end = position + size * 8;
    CommonBits bits{words, position};
    if (lane < kNumLengthSymbols) {
        CommonBits own{words, position + lane * kLengthFieldBits};
        lengths[lane] = static_cast<u8>(own.take(kLengthFieldBits));
    }
    __syncwarp();
    if (!build_decode_table<kMaxLengthBits>(lengths, kNumLengthSymbols, scratch, table)) {
        return false;
    }
    bits.position += kNumLengthSymbols * kLengthFieldBits;
    u32 before = 0;
    for (int index = 0; index < kNumCodeLengths;) {
        const u32 window = bits.peek(kMaxLengthBits + 7);
        const u32 entry = table[window & ((1 << kMaxLengthBits) - 1)];
        if (entry == kNoCodeword) {
            return false;
        }
        const u32 symbol = entry & 255;
        const u32 extra = window >> (entry >> 8);
        int run = 1;
        u32 used = entry >> 8;
        if (symbol < kLengthSymbolRepeat) {
            before = symbol;
        } else if (symbol == kLengthSymbolRepeat) {
            run = 3 + (extra & 3);
            used += 2;
        } else {
            const bool many = symbol == kLengthSymbolManyZeros;
            run = many ? 11 + (extra & 127) : 3 + (extra & 7);
            used += many ? 7 : 3;
            before = 0;
        }
        bits.position += used;
        if (run > kNumCodeLengths - index || bits.position > end) {
            return false;
        }
        for (int place = lane; place < run; place += kWarpSize) {
            lengths[index + place] = static_cast<u8>(before);
        }
        index += run;
    }
    __syncwarp();
    return end - bits.position < 8;
}

}  // namespace gompfs

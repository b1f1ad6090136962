// Writes the code lengths of a payload of gompresso-bit, as write_code_lengths in
// native/codec/huffman.cpp does: as symbols of a code whose own lengths come first. One warp works
// on it.
//
// The row of all code lengths is cut into runs of equal lengths. A lane takes every 32nd run; its
// symbols depend on the run alone.
#pragma once

#include "encode/code_lengths.cuh"
#include "encode/lane_bits.cuh"
#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kNumSymbols = kNumLiteralSymbols + kNumTokenSymbols + kNumOffsetSymbols;
static_assert(kMaxLengthBits <= static_cast<int>(kMaxLimit));

// Shared memory of the warp.
struct LengthRow {
    u16 starts[kNumSymbols + 1];  // where each run begins, then where the last one ends
    u32 counts[kNumLengthSymbols];
    u8 lengths[kNumLengthSymbols];
    Codeword codewords[kNumLengthSymbols];
};

// Calls take(symbol, extra, num_extra_bits) for each length symbol of a run.
template <class Take>
__device__ inline void for_each_length_symbol(u32 length, u32 run, Take&& take) {
    if (length != 0) {
        take(length, 0u, 0u);
        --run;
    }
    while (run >= 3) {
        const u32 piece = min(run, length == 0 ? 138u : 6u);
        if (length != 0) {
            take(kLengthSymbolRepeat, piece - 3, 2u);
        } else if (piece <= 10) {
            take(kLengthSymbolZeros, piece - 3, 3u);
        } else {
            take(kLengthSymbolManyZeros, piece - 11, 7u);
        }
        run -= piece;
    }
    for (; run != 0; --run) {
        take(length, 0u, 0u);
    }
}

// Finds the runs of equal lengths. Returns their number.
__device__ inline u32 find_runs(const u8* lengths, LengthRow& row) {
    u32 num_runs = 0;
    for (u32 first = 0; first < kNumSymbols; first += kWarpSize) {
        const u32 index = first + lane_id();
        const bool begins =
            index < kNumSymbols && (index == 0 || lengths[index] != lengths[index - 1]);
        const u32 all = __ballot_sync(kAllLanes, begins);
        if (begins) {
            row.starts[num_runs + __popc(all & lanes_below(lane_id()))] = static_cast<u16>(index);
        }
        num_runs += __popc(all);
    }
    if (lane_id() == 0) {
        row.starts[num_runs] = kNumSymbols;
    }
    __syncwarp();
    return num_runs;
}

// The runs of a row, and the bits of its length symbols with the lengths of their own code.
struct LengthRowShape {
    u32 num_runs;
    u32 num_bits;
};

// Finds the runs of the code lengths and builds the code of the length symbols.
__device__ inline LengthRowShape shape_length_row(const u8* lengths, LengthRow& row,
                                                  TreeScratch& scratch) {
    const u32 lane = lane_id();
    const u32 num_runs = find_runs(lengths, row);
    if (lane < kNumLengthSymbols) {
        row.counts[lane] = 0;
    }
    __syncwarp();
    u32 num_bits = 0;
    for (u32 run = lane; run < num_runs; run += kWarpSize) {
        const u32 start = row.starts[run];
        for_each_length_symbol(lengths[start], row.starts[run + 1] - start,
                               [&](u32 symbol, u32, u32 num_extra_bits) {
                                   atomicAdd(&row.counts[symbol], 1u);
                                   num_bits += num_extra_bits;
                               });
    }
    __syncwarp();
    limited_code_lengths(row.counts, kNumLengthSymbols, kMaxLengthBits, row.lengths, scratch);
    assign_codewords(row.lengths, kNumLengthSymbols, scratch.leaves, row.codewords);
    if (lane < kNumLengthSymbols) {
        num_bits += row.counts[lane] * row.lengths[lane] + kLengthFieldBits;
    }
    return {num_runs, sum_of_warp(num_bits)};
}

// Writes the lengths of the code of length symbols, and all length symbols, from bit `position` on.
// The words that receive them must be zero.
__device__ inline void write_length_row(const u8* lengths, u32 num_runs, const LengthRow& row,
                                        u32* words, u32 position) {
    const u32 lane = lane_id();
    if (lane < kNumLengthSymbols) {
        LaneBits out(words, position + lane * kLengthFieldBits);
        out.put(row.lengths[lane], kLengthFieldBits);
        out.finish();
    }
    position += kNumLengthSymbols * kLengthFieldBits;
    for (u32 first = 0; first < num_runs; first += kWarpSize) {
        const u32 run = min(first + lane, num_runs);
        const u32 start = row.starts[run];
        const u32 size = run < num_runs ? row.starts[run + 1] - start : 0;
        const u32 length = size == 0 ? 0 : lengths[start];
        u32 num_bits = 0;
        for_each_length_symbol(length, size, [&](u32 symbol, u32, u32 num_extra_bits) {
            num_bits += row.lengths[symbol] + num_extra_bits;
        });
        const u32 through = inclusive_sum(num_bits, lane);
        LaneBits out(words, position + through - num_bits);
        for_each_length_symbol(length, size, [&](u32 symbol, u32 extra, u32 num_extra_bits) {
            const Codeword codeword = row.codewords[symbol];
            out.put(codeword.bits | extra << codeword.num_bits, codeword.num_bits + num_extra_bits);
        });
        out.finish();
        position += __shfl_sync(kAllLanes, through, kWarpSize - 1);
    }
}

}  // namespace gompfs

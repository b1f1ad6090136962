// Decodes one block of gompresso-tadoc with one warp.
//
// A block is a row of symbols, and each symbol stands for bytes of its part's pool, so no byte of
// the output depends on other output. Symbol i belongs to sub-block i % 32, so in each row of 32
// symbols lane i decodes symbol i (SymbolReader). The warp then writes the bytes of the row
// (write_row).
//
// The reader is ahead of the writer: while row r is written, the expansions of row r + 2 and the
// bits of row r + 3 are loaded. Row r + 1 must be known, because its first symbol may take the
// space away with which row r ends.
//
// Writing
//
// A prefix sum over the sizes of the symbols, without the spaces that are taken away, says where
// each symbol begins in the output. Each lane sets the bit of that position in a mask
// (RowPieces::starts), and stores the distance from the position to the symbol's bytes in the
// pool. Then all lanes copy 32 bytes at a time, one byte each: the number of bits set in the mask
// up to a byte is the index of its symbol. So the lanes do the same work, whatever the sizes of the
// symbols are, and store to adjacent addresses. A row with more bytes than the mask has bits is
// written in several windows.
//
// Invariants
//
// - No lane reads bits after the end of its sub-block, but for the last load: a symbol that ends
//   after the sub-block makes the payload invalid. After the last row every sub-block must have
//   ended exactly.
// - An expansion is loaded only for a rank below TadocHead::num_ranks. Expansions are inside the
//   pool; the host has checked that.
// - Every symbol with bytes must begin before the end of the output. So positions stay below
//   kMaxBlockSize + kWarpSize * kMaxExpansionSize, and do not wrap.
// - Mask bits and bytes of the output are written for positions below the end of the output only.
// - The mask is zero between rows.
#pragma once

#include "codec/batch.cuh"
#include "codec/sub_blocks.cuh"
#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kClassCodeEntries = 1 << kMaxClassBits;
constexpr u32 kTadocWindow = 4096;  // bytes whose symbols can be in the mask at once
constexpr u32 kTadocSectors = 8;    // the loads of so many times 32 bytes overlap
// Limits the kernel to 72 registers per thread. With 8 CTAs or more, registers are spilled: on an
// H200 and parts of 256 KiB, 10 decode 189 GB/s, 8 decode 326, 7 decode 393, and 6 decode 366.
constexpr int kTadocCtasPerProcessor = 7;
constexpr u32 kTadocChunk = kTadocSectors * kWarpSize;

// The class code of the ranks.
struct RankCode {
    u8 lengths[64];                 // of the codewords in bits, by class
    u8 classes[kClassCodeEntries];  // by the next bits of a stream
};

// The head of a part in device memory, at a multiple of 16. The expansions of the symbols follow,
// by rank (64 bits each): the offset in the pool (bits 0 to 31), the size (32 to 61), whether the
// symbol ends with a word (62), and whether it begins with a separator (63).
struct alignas(16) TadocHead {
    u32 num_ranks;    // 0 if the class code is empty
    u32 pool_offset;  // from the start of the head, in bytes
    u32 unused[2];
    RankCode code;
};

// The symbols of a row that is written, in shared memory.
struct alignas(16) RowPieces {
    u32 starts[kTadocWindow / kWarpSize];  // a bit per byte: whether a symbol begins there
    u32 to_source[kWarpSize];  // per symbol with bytes: its offset in the pool minus its position
};

// The shared memory of one warp.
struct alignas(16) TadocShared {
    RankCode code;
    RowPieces pieces;
};

// Copies the class code of a head to shared memory.
__device__ inline void load_code(const TadocHead& head, RankCode& code) {
    constexpr u32 kUnits = sizeof(RankCode) / sizeof(uint4);
    __syncwarp();
    for (u32 unit = lane_id(); unit < kUnits; unit += kWarpSize) {
        reinterpret_cast<uint4*>(&code)[unit] = reinterpret_cast<const uint4*>(&head.code)[unit];
    }
    __syncwarp();
}

// Prepares a warp's shared memory for its first row.
__device__ inline void clear_starts(RowPieces& pieces) {
    for (u32 word = lane_id(); word < kTadocWindow / kWarpSize; word += kWarpSize) {
        pieces.starts[word] = 0;
    }
    __syncwarp();
}

struct Expansion {
    u64 bits;

    __device__ u32 offset() const { return static_cast<u32>(bits); }
    __device__ u32 size() const { return static_cast<u32>(bits >> 32) & 0x3fffffff; }
    __device__ bool ends_with_word() const { return (bits >> 62 & 1) != 0; }
    __device__ bool begins_with_separator() const { return bits >> 63 != 0; }
};

// Decodes the symbols of one sub-block.
struct SymbolReader {
    const u32* words;  // the payload as 32-bit words
    u32 num_symbols;   // of the block
    u32 skip;
    // This lane's sub-block, in bits from the payload's start.
    u32 position;
    u32 end;
    u32 next;    // number of this lane's next symbol
    u64 window;  // the bits from `position` on
    bool is_valid;

    // Reads the header and finds the sub-block. Returns false in all lanes if that is not valid.
    __device__ bool open(const BlockTask& task) {
        if (task.payload_size < kTadocHeaderSize + kBitPadding) {
            return false;
        }
        words = reinterpret_cast<const u32*>(task.payload);
        num_symbols = words[0];
        const u32 base = words[1], skip_and_width = words[2];
        skip = skip_and_width & 0xffff;
        const u32 width = skip_and_width >> 16 & 255, reserved = skip_and_width >> 24;
        const u32 stream_end = (task.payload_size - kBitPadding) * 8;
        const u32 fields = kTadocHeaderSize * 8, start = fields + kNumSubBlocks * width;
        // A symbol takes at least one bit.
        if (num_symbols == 0 || num_symbols > stream_end || width > kMaxSizeWidth ||
            reserved != 0 || base > stream_end || start > stream_end) {
            return false;
        }
        const u32 last_end = locate_sub_blocks(words, fields, width, base, start, position, end);
        if (!__all_sync(kAllLanes, end <= stream_end) || stream_end - last_end >= 8) {
            return false;
        }
        next = lane_id();
        window = load_bits(words, position);
        is_valid = true;
        return true;
    }

    // Decodes this lane's symbol of the next row: an empty expansion after the last symbol. A rank
    // that does not exist, or a codeword that ends after the sub-block, gives an empty expansion,
    // and makes is_valid false.
    __device__ Expansion read(const RankCode& code, const u64* expansions, u32 num_ranks) {
        const bool is_active = next < num_symbols && is_valid;
        next += kWarpSize;
        if (!is_active) {
            return {0};
        }
        const u32 number_class = code.classes[window & (kClassCodeEntries - 1)];
        const u32 length = code.lengths[number_class], extra_bits = number_class / 2;
        const u32 rank =
            ((2 + number_class % 2) << extra_bits) - 2 + low_bits(window >> length, extra_bits);
        position += length + extra_bits;
        is_valid = rank < num_ranks && position <= end;
        if (!is_valid) {
            return {0};
        }
        window = load_bits(words, position);
        return {expansions[rank]};
    }
};

// Copies the bytes of one chunk of the output, which begins at `first`, as far as they lie between
// `begin` and `end`. `starts` is the mask of the chunk, and `piece` the index of the symbol that
// has the byte before the chunk. Returns the index of the symbol that has the last byte.
__device__ inline u32 copy_chunk_of_row(u8* output, const u8* pool, const u32* starts,
                                        const u32* to_source, u32 first, u32 begin, u32 end,
                                        u32 piece) {
    const u32 lane = lane_id();
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    u32 words[kTadocSectors];
#pragma unroll
    for (u32 sector = 0; sector < kTadocSectors; sector += 4) {
        const uint4 four = reinterpret_cast<const uint4*>(starts)[sector / 4];
        words[sector] = four.x;
        words[sector + 1] = four.y;
        words[sector + 2] = four.z;
        words[sector + 3] = four.w;
    }
    u8 values[kTadocSectors];
#pragma unroll
    for (u32 sector = 0; sector < kTadocSectors; ++sector) {
        const u32 position = first + sector * kWarpSize + lane;
        const u32 own_piece = piece + __popc(words[sector] & up_to_lane);
        piece += __popc(words[sector]);
        values[sector] = 0;
        if (position - begin < end - begin) {
            values[sector] = pool[to_source[own_piece] + position];
        }
    }
#pragma unroll
    for (u32 sector = 0; sector < kTadocSectors; ++sector) {
        const u32 position = first + sector * kWarpSize + lane;
        if (position - begin < end - begin) {
            output[position] = values[sector];
        }
    }
    return piece;
}

// Writes the bytes of a row to the output from `begin` to `end`. This lane's symbol begins at
// `start`; its bytes are at `source` in the pool. If has_bytes is false, it has none.
__device__ inline void write_row(u8* output, const u8* pool, u32 begin, u32 end, u32 start,
                                 u32 source, bool has_bytes, RowPieces& pieces) {
    const u32 lane = lane_id();
    const u32 with_bytes = __ballot_sync(kAllLanes, has_bytes);
    if (has_bytes) {
        pieces.to_source[__popc(with_bytes & lanes_below(lane))] = source - start;
    }
    u32 piece = 0xffffffffu;  // the first bit of the mask makes it 0
    for (u32 window = begin - begin % kWarpSize; window < end; window += kTadocWindow) {
        if (has_bytes && start - window < kTadocWindow) {
            atomicOr(&pieces.starts[(start - window) / kWarpSize], 1u << start % kWarpSize);
        }
        __syncwarp();
        const u32 size = min(end - window, kTadocWindow);
        for (u32 offset = 0; offset < size; offset += kTadocChunk) {
            piece = copy_chunk_of_row(output, pool, pieces.starts + offset / kWarpSize,
                                      pieces.to_source, window + offset, begin, end, piece);
        }
        __syncwarp();
        for (u32 word = lane; word * kWarpSize < size; word += kWarpSize) {
            pieces.starts[word] = 0;
        }
        __syncwarp();
    }
}

// Decodes one block of the part with this head, whose class code is in shared.code. Returns false
// in all lanes if the payload is not valid.
__device__ inline bool decode_tadoc_block(const BlockTask& task, const TadocHead& head,
                                          TadocShared& shared) {
    const int lane = lane_id();
    const u64* const expansions = reinterpret_cast<const u64*>(&head + 1);
    const u8* const pool = reinterpret_cast<const u8*>(&head) + head.pool_offset;
    const u32 num_ranks = head.num_ranks;
    SymbolReader reader;
    if (!reader.open(task)) {
        return false;
    }
    Expansion symbol = reader.read(shared.code, expansions, num_ranks);
    Expansion following = reader.read(shared.code, expansions, num_ranks);
    u32 skipped = lane == 0 ? reader.skip : 0;  // bytes of this lane's symbol
    if (!__all_sync(kAllLanes, lane != 0 || symbol.size() > skipped)) {
        return false;
    }
    u32 position = 0;
    for (u32 first = 0; first < reader.num_symbols; first += kWarpSize) {
        const Expansion later = reader.read(shared.code, expansions, num_ranks);
        // Bit i > 0: whether the symbol of lane i begins with a separator, so that lane i - 1 may
        // lose its space. Bit 0 says the same of the symbol after the row, for the last lane.
        const u32 separators =
            __ballot_sync(kAllLanes, (lane == 0 ? following : symbol).begins_with_separator());
        const bool loses_space =
            symbol.ends_with_word() && (separators >> (lane + 1) % kWarpSize & 1) != 0;
        const u32 length = symbol.size() - skipped - (loses_space ? 1 : 0);
        const u32 symbol_end = position + inclusive_sum(length, lane);
        const u32 start = symbol_end - length;
        const bool begins_late = symbol.size() != 0 && start >= task.output_size;
        if (__any_sync(kAllLanes, begins_late || !reader.is_valid)) {
            return false;
        }
        const u32 row_end = __shfl_sync(kAllLanes, symbol_end, kWarpSize - 1);
        write_row(task.output, pool, position, min(row_end, task.output_size), start,
                  symbol.offset() + skipped, length != 0, shared.pieces);
        position = row_end;
        skipped = 0;
        symbol = following;
        following = later;
    }
    return __all_sync(kAllLanes, reader.position == reader.end) && position >= task.output_size;
}

// Dynamic shared memory, in bytes.
constexpr unsigned kTadocBytesPerWarp = sizeof(TadocShared);

}  // namespace gompfs

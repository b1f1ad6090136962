// Decoding one row: the next sequence of each of the 32 sub-blocks of a gompresso-bit payload.
#pragma once

#include <array>
#include <cstdint>

#include "format_constants.h"

namespace gompfs {

using Positions = std::array<std::uint32_t, kNumSubBlocks>;  // in bits from the start of the stream

// One sequence of each sub-block: literal_length | match_length << 16 | match_offset << 32, where
// match_offset 0 stands for the offset before.
using SequenceRow = std::array<std::uint64_t, kNumSubBlocks>;

// A token entry holds, from the lowest bit: literal base (16 bits), match base (16), then as bytes
// codeword bits, literal extra bits, match extra bits, and the sum of the three.
using TokenTable = std::array<std::uint64_t, 1 << kMaxTokenBits>;

// An offset entry holds codeword bits, extra bits and their sum as bytes; its base (32 bits) lies
// highest, and is 0 for a repeated offset.
using OffsetTable = std::array<std::uint64_t, 1 << kMaxOffsetBits>;

std::uint64_t token_entry(std::size_t symbol, std::uint64_t codeword_bits);
std::uint64_t offset_entry(std::size_t symbol, std::uint64_t codeword_bits);

struct RowTables {
    const std::uint8_t*
        stream;  // readable for 8 bytes from every position that is not past its end
    const std::uint64_t* token;
    const std::uint64_t* offset;
};

// Decodes a sequence of each of the first count sub-blocks and moves their positions behind it.
// Returns the farthest position: the caller must compare it with the stream's end before the next
// row.
using DecodeRow = std::uint32_t (*)(const RowTables& tables, std::uint32_t* positions, int count,
                                    std::uint64_t* row);

// The fastest version that this processor runs.
DecodeRow select_decode_row();

}  // namespace gompfs

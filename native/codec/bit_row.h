// Decodes one row of a gompresso-bit payload: the next sequence of each of the 32 sub-blocks.
//
// Table entries contain base values and bit counts, so that a sequence is decoded without a branch
// on its classes: one lookup for the token, one for the offset, then shifts and masks.
#pragma once

#include <array>
#include <cstdint>

#include "shared/format_constants.h"

namespace gompfs {

using Positions = std::array<std::uint32_t, kNumSubBlocks>;  // in bits from the start of the stream

// One sequence of each sub-block: literal_length | match_length << 16 | match_offset << 32. A
// match_offset of 0 repeats the previous match offset; one from a dictionary has the bit
// kFromDictionary.
using SequenceRow = std::array<std::uint64_t, kNumSubBlocks>;

// A token entry holds, from the lowest bit: the literal base (16 bits), the match base (16 bits),
// then one byte each: codeword bits, literal extra bits, match extra bits, and the sum of the
// three.
using TokenTable = std::array<std::uint64_t, 1 << kMaxTokenBits>;

// An offset entry holds one byte each: codeword bits, extra bits, and their sum. The highest 32
// bits are the base, 0 for a repeated offset.
using OffsetTable = std::array<std::uint64_t, 1 << kMaxOffsetBits>;

std::uint64_t token_entry(std::size_t symbol, std::uint64_t codeword_bits);
std::uint64_t offset_entry(std::size_t symbol, std::uint64_t codeword_bits);

struct RowTables {
    // Readable for 8 bytes from every position that is not past its end.
    const std::uint8_t* stream;
    const std::uint64_t* token;
    const std::uint64_t* offset;
};

// Decodes one sequence of each of the first `count` sub-blocks and advances their positions.
// Returns the highest position; the caller must compare it with the stream's end before it decodes
// the next row.
using DecodeRow = std::uint32_t (*)(const RowTables& tables, std::uint32_t* positions, int count,
                                    std::uint64_t* row);

// The fastest version that this processor supports.
DecodeRow select_decode_row();

}  // namespace gompfs

// Canonical Huffman codes of limited length, and their compact description in a payload.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/bit_stream.h"

namespace gompfs {

// Codeword lengths for symbols of the given counts, none above max_bits; 0 for a symbol that never
// occurs, 1 for one that is alone. Near-optimal: lengths of the plain Huffman code, flattened to fit.
void limited_code_lengths(std::span<const std::uint32_t> counts, int max_bits, std::uint8_t* lengths);

// Canonical codewords, first bit lowest: symbols of one length are numbered upwards, shorter first.
void canonical_codewords(std::span<const std::uint8_t> lengths, std::uint16_t* codewords);

// True for a code that leaves no codeword unused, one with a single symbol of length 1, or an empty one.
bool is_decodable(std::span<const std::uint8_t> lengths, int max_bits);

// The index of a symbol's entries in a decode table of 2^table_bits entries: calls fill(index, symbol)
// for each index whose low bits are the symbol's codeword. lengths must be decodable.
template <typename Fill>
void fill_decode_table(std::span<const std::uint8_t> lengths, int table_bits, Fill&& fill) {
    std::vector<std::uint16_t> codewords(lengths.size());
    canonical_codewords(lengths, codewords.data());
    std::size_t num_symbols = 0;
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        num_symbols += lengths[symbol] != 0;
    }
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
        if (lengths[symbol] == 0) {
            continue;
        }
        const std::size_t step = num_symbols == 1 ? 1 : std::size_t{1} << lengths[symbol];
        for (std::size_t index = codewords[symbol]; index < std::size_t{1} << table_bits; index += step) {
            fill(index, symbol);
        }
    }
}

// Writes all lengths of a payload, one after another, as symbols of a code that describes itself.
std::vector<std::uint8_t> write_code_lengths(std::span<const std::uint8_t> lengths);

// Reads them back. Returns the bytes used, or 0 when they are not valid.
std::size_t read_code_lengths(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> lengths);

}  // namespace gompfs

// Canonical Huffman codes of limited length, and their compact description in a payload.
//
// Lengths are limited so that one table lookup decodes a symbol (Gompresso, Sitaridi et al., ICPP
// 2016, section 3). Decode tables are indexed by the next bits of the stream, first bit lowest.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "common/bit_stream.h"

namespace gompfs {

constexpr std::size_t kMaxAlphabet = 256;

// Computes codeword lengths for symbols with the given counts, none above max_bits. The length is 0
// for a symbol that never occurs, and 1 for the only symbol of a code. No other code with this
// limit is shorter in total.
void limited_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                          std::uint8_t* lengths);

// Canonical codewords, first bit lowest. Codewords of equal length are numbered in the order of
// their symbols, shorter lengths first.
void canonical_codewords(std::span<const std::uint8_t> lengths, std::uint16_t* codewords);

// The symbols that have a codeword, in the order of their codewords.
struct SortedSymbols {
    std::array<std::uint16_t, kMaxAlphabet + 1> symbols;
    std::size_t count;
    bool decodable;  // no codeword is unused, or there is a single symbol of length 1, or no symbol
};

SortedSymbols sort_by_codeword(std::span<const std::uint8_t> lengths, int max_bits);

// Fills a decode table, whose size is a power of 2 and which is indexed by the next bits of the
// stream: a symbol has the entries whose index has the symbol's codeword in its low bits.
// entry_of(symbol) returns the entry. All entries of an empty code are 0; a single symbol fills the
// whole table. Returns false if the lengths do not form a code.
//
// Codewords come in the order of their lengths. So the table grows with the length: the entries
// filled for one length are repeated for the next, in a table twice as long, and no entry is
// computed twice.
template <typename Entry, std::size_t Extent, typename EntryOf>
bool build_decode_table(std::span<const std::uint8_t> lengths, std::span<Entry, Extent> table,
                        EntryOf&& entry_of) {
    const std::size_t size = table.size();
    const SortedSymbols sorted = sort_by_codeword(lengths, std::bit_width(size) - 1);
    if (!sorted.decodable) {
        return false;
    }
    Entry* const entries = table.data();
    if (sorted.count < 2) {
        std::fill_n(entries, size, sorted.count == 0 ? Entry{0} : entry_of(sorted.symbols[0]));
        return true;
    }
    std::size_t filled = 1;  // 2 to the power of the current length
    std::size_t codeword = 0;
    for (std::size_t index = 0; index < sorted.count; ++index) {
        const std::uint16_t symbol = sorted.symbols[index];
        for (; filled < std::size_t{1} << lengths[symbol]; filled *= 2) {
            std::memcpy(entries + filled, entries, filled * sizeof(Entry));
        }
        entries[codeword] = entry_of(symbol);
        // The next codeword with the first bit lowest: add 1 at the highest bit, and carry
        // downwards.
        const std::size_t zeros = codeword ^ (filled - 1);
        if (zeros != 0) {
            const std::size_t highest = std::bit_floor(zeros);
            codeword = (codeword & (highest - 1)) | highest;
        }
    }
    for (; filled < size; filled *= 2) {
        std::memcpy(entries + filled, entries, filled * sizeof(Entry));
    }
    return true;
}

template <typename Entry, std::size_t Size, typename EntryOf>
bool build_decode_table(std::span<const std::uint8_t> lengths, std::array<Entry, Size>& table,
                        EntryOf&& entry_of) {
    return build_decode_table(lengths, std::span<Entry, Size>(table), entry_of);
}

// Writes all code lengths of a payload as symbols of a code whose own lengths come first.
std::vector<std::uint8_t> write_code_lengths(std::span<const std::uint8_t> lengths);

// Reads the lengths that write_code_lengths wrote. Returns the number of bytes used, or 0 if they
// are not valid.
std::size_t read_code_lengths(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> lengths);

}  // namespace gompfs

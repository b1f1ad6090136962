// Canonical Huffman codes of limited length, and their compact description in a payload.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "codec/bit_stream.h"

namespace gompfs {

constexpr std::size_t kMaxAlphabet = 256;

// Codeword lengths for symbols of the given counts, none above max_bits; 0 for a symbol that never
// occurs, 1 for one that is alone. No other such code is shorter.
void limited_code_lengths(std::span<const std::uint32_t> counts, int max_bits,
                          std::uint8_t* lengths);

// Canonical codewords, first bit lowest: symbols of one length are numbered upwards, shorter first.
void canonical_codewords(std::span<const std::uint8_t> lengths, std::uint16_t* codewords);

// The symbols that have a codeword, in the order of their codewords, and how many have each length.
struct SortedSymbols {
    std::array<std::uint16_t, kMaxAlphabet + 1> symbols;
    std::size_t count;
    bool decodable;  // no codeword is unused, or there is a single symbol of length 1, or none
};

SortedSymbols sort_by_codeword(std::span<const std::uint8_t> lengths, int max_bits);

// Fills a decode table that is indexed by the next bits of the stream: the entries of a symbol are
// those whose index has its codeword in the low bits. entry_of(symbol) gives the entry. An empty
// code has zero entries, and a single symbol takes the whole table. False when the lengths make no
// code.
//
// Codewords come in order of length, so the table grows with it: whatever was filled for one length
// repeats for the next, twice as long, and no entry is computed twice.
template <typename Entry, std::size_t Size, typename EntryOf>
bool build_decode_table(std::span<const std::uint8_t> lengths, std::array<Entry, Size>& table,
                        EntryOf&& entry_of) {
    constexpr int kTableBits = std::bit_width(Size) - 1;
    const SortedSymbols sorted = sort_by_codeword(lengths, kTableBits);
    if (!sorted.decodable) {
        return false;
    }
    Entry* const entries = table.data();
    if (sorted.count < 2) {
        std::fill_n(entries, Size, sorted.count == 0 ? Entry{0} : entry_of(sorted.symbols[0]));
        return true;
    }
    std::size_t filled = 1;  // 2 ^ the present length
    std::size_t codeword = 0;
    for (std::size_t index = 0; index < sorted.count; ++index) {
        const std::uint16_t symbol = sorted.symbols[index];
        for (; filled < std::size_t{1} << lengths[symbol]; filled *= 2) {
            std::memcpy(entries + filled, entries, filled * sizeof(Entry));
        }
        entries[codeword] = entry_of(symbol);
        // The next codeword, with its first bit lowest: add one from the other end.
        const std::size_t zeros = codeword ^ (filled - 1);
        if (zeros != 0) {
            const std::size_t highest = std::bit_floor(zeros);
            codeword = (codeword & (highest - 1)) | highest;
        }
    }
    for (; filled < Size; filled *= 2) {
        std::memcpy(entries + filled, entries, filled * sizeof(Entry));
    }
    return true;
}

// Writes all lengths of a payload, one after another, as symbols of a code that describes itself.
std::vector<std::uint8_t> write_code_lengths(std::span<const std::uint8_t> lengths);

// Reads them back. Returns the bytes used, or 0 when they are not valid.
std::size_t read_code_lengths(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> lengths);

}  // namespace gompfs

// How a sequence is expressed in a gompresso-bit payload: symbols of the token code and the offset
// code, with extra bits after their codewords (docs/format.md).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "codec/parse/parser.h"
#include "common/bit_stream.h"
#include "shared/dictionary_addresses.h"
#include "shared/format_constants.h"

namespace gompfs {

// The symbols of all three codes share one array; these are the first indexes.
constexpr int kFirstLiteral = 0;
constexpr int kFirstToken = kNumLiteralSymbols;
constexpr int kFirstOffset = kNumLiteralSymbols + kNumTokenSymbols;
// The offset symbols of the dictionary come last; without a dictionary there are none of them.
constexpr int kNumAllOffsetSymbols = kNumOffsetSymbols + kNumDictionarySymbols;
constexpr int kNumSymbols = kNumLiteralSymbols + kNumTokenSymbols + kNumAllOffsetSymbols;

constexpr int num_offset_symbols(bool has_dictionary) {
    return has_dictionary ? kNumAllOffsetSymbols : kNumOffsetSymbols;
}

using SymbolCounts = std::array<std::uint32_t, kNumSymbols>;

// A symbol and the extra bits after its codeword.
struct Field {
    std::uint32_t symbol;
    std::uint32_t extra;
    int num_extra_bits;
};

// One sequence as the fields that its sub-block contains.
struct CodedSequence {
    Field token;  // its extra bits are those of literal_length, then those of match_length
    Field offset;
    bool has_match;
};

using ClassOfLength = std::array<std::uint8_t, 512>;

// The class of each value; classes from `first` on begin at base[class].
template <typename Base, std::size_t Size>
constexpr ClassOfLength class_table(const Base (&base)[Size], std::size_t first) {
    ClassOfLength table{};
    for (std::size_t value = 0; value < table.size(); ++value) {
        std::size_t found = first;
        while (found + 1 < Size && base[found + 1] <= value) {
            ++found;
        }
        table[value] = static_cast<std::uint8_t>(found);
    }
    return table;
}

inline constexpr ClassOfLength kLiteralClassOf = class_table(kLiteralClassBase, 0);
inline constexpr ClassOfLength kMatchClassOf = class_table(kMatchClassBase, 1);

constexpr bool is_from_dictionary(std::uint32_t offset) { return (offset & kFromDictionary) != 0; }

// The last match offset of a row after a match: one from the dictionary is never repeated.
constexpr std::uint32_t last_offset_after(std::uint32_t last_offset, std::uint32_t offset) {
    return is_from_dictionary(offset) ? last_offset : offset;
}

inline Field address_field(std::uint32_t address) {
    const int num_extra_bits = std::bit_width(address + 4) - 3;
    const std::uint32_t quarter = ((address + 4) >> num_extra_bits) & 3;
    return {kFirstDictionarySymbol + 4 * static_cast<std::uint32_t>(num_extra_bits) + quarter,
            static_cast<std::uint32_t>(low_bits(address + 4, num_extra_bits)), num_extra_bits};
}

inline Field offset_field(std::uint32_t offset, bool repeat) {
    if (is_from_dictionary(offset)) {
        return address_field(offset & ~kFromDictionary);
    }
    if (repeat) {
        return {kOffsetSymbolRepeat, 0, 0};
    }
    const int octave = std::bit_width(offset + 1) - 1;
    const int num_extra_bits = octave - 1;
    const std::uint32_t half = ((offset + 1) >> num_extra_bits) & 1;
    return {1 + 2 * static_cast<std::uint32_t>(octave - 1) + half,
            static_cast<std::uint32_t>(low_bits(offset + 1, num_extra_bits)), num_extra_bits};
}

inline CodedSequence code_sequence(const Sequence& sequence, bool repeat) {
    const unsigned literal_class = kLiteralClassOf[sequence.literal_length];
    const bool has_match = sequence.match_length != 0;
    const unsigned match_class = has_match ? kMatchClassOf[sequence.match_length] : 0;
    const int literal_bits = kLiteralClassExtraBits[literal_class];
    const int match_bits = has_match ? kMatchClassExtraBits[match_class] : 0;
    const std::uint32_t literal_extra = sequence.literal_length - kLiteralClassBase[literal_class];
    const std::uint32_t match_extra =
        has_match ? sequence.match_length - kMatchClassBase[match_class] : 0;
    return {{literal_class << 5 | match_class, literal_extra | match_extra << literal_bits,
             literal_bits + match_bits},
            has_match ? offset_field(sequence.match_offset, repeat) : Field{0, 0, 0},
            has_match};
}

}  // namespace gompfs

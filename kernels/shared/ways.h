// The rules of the backward parser of gompresso-bit that the CPU
// (native/codec/parse/bit_backward_parser.cpp, which explains them) and the kernels of
// kernels/encode share: limits, costs, and the layout of candidates, choices and repeats.
//
// CUDA and C++ both include this file.
#pragma once

#include "shared/format_constants.h"
#include "shared/host_device.h"
#include "shared/match_costs.h"

namespace gompfs {

// A block is cut into this many segments, which are searched independently: a lane of a warp takes
// one.
constexpr unsigned kNumSegments = 32;
// How often a block is searched: from the second pass on, costs come from the sequences that the
// pass before found.
constexpr unsigned kNumPasses = 3;
// The cost of a byte of the next segments in the first pass.
constexpr int kFirstByteCost = 2 * kCostOfBit;

GOMPFS_FUNCTION unsigned segment_size(unsigned block_size) {
    return (block_size + kNumSegments - 1) / kNumSegments;
}

// The number of positions with the same hash at which the nearest match of four bytes is searched.
constexpr int kMaxNearest = 4;
// The most literals between a match and a match that repeats its offset.
constexpr unsigned kMaxRepeatLiterals = 4;
// Of a match, all lengths up to kEachLength are tried, and of the greater lengths the longest
// kNumLongest. Each length up to kEachLength is a match class of its own.
constexpr unsigned kEachLength = 18;
constexpr unsigned kNumLongest = 4;

// The states of a literal string before a match: its lengths 0 to 10, and all others together.
constexpr int kNumLiteralStates = 12;
constexpr int kLastLiteralState = kNumLiteralStates - 1;

GOMPFS_FUNCTION int literal_class_of(int state) {
    return state < 5 ? state : state < 7 ? 5 : state < kLastLiteralState ? 6 : 7;
}
// The number of a state among those of its class.
GOMPFS_FUNCTION int state_in_class(int state) {
    return state < 5 || state == kLastLiteralState ? 0 : state < 7 ? state - 5 : state - 7;
}
GOMPFS_FUNCTION unsigned match_class_of(unsigned length) {
    return length < 19    ? length - 2
           : length < 27  ? 17 + (length - 19) / 2
           : length < 43  ? 21 + (length - 27) / 4
           : length < 75  ? 25 + (length - 43) / 8
           : length < 107 ? 29
           : length < 171 ? 30
                          : 31;
}

// The candidates at a position: the nearest match of at least four bytes; the match that gains most
// (best_match.h), unless it is the same match; and the nearest match of exactly three bytes.
constexpr unsigned kNearestMatch = 0, kBestMatch = 1, kShortMatch = 2, kNumCandidates = 3;
// A match from a dictionary. Kernels have none.
constexpr unsigned kDictionaryMatch = 3;

// The offset is 0 if there is no match.
struct WayMatch {
    unsigned offset;
    unsigned length;
    // A later match that repeats this offset: the number of literals before it (0: there is no such
    // match), and its length.
    unsigned repeat_literals;
    unsigned repeat_length;
};

constexpr int kWayOffsetBits = 20, kWayLengthBits = 9, kRepeatLiteralBits = 3;
constexpr unsigned kWayOffsetMask = (1u << kWayOffsetBits) - 1;
constexpr unsigned kWayLengthMask = (1u << kWayLengthBits) - 1;

// A match without the length of its repeat, in 32 bits.
GOMPFS_FUNCTION unsigned pack_way_match(const WayMatch& match) {
    return match.offset | match.length << kWayOffsetBits |
           match.repeat_literals << (kWayOffsetBits + kWayLengthBits);
}
GOMPFS_FUNCTION WayMatch unpack_way_match(unsigned packed, unsigned repeat_length) {
    return {packed & kWayOffsetMask, packed >> kWayOffsetBits & kWayLengthMask,
            packed >> (kWayOffsetBits + kWayLengthBits), repeat_length};
}

// The candidates of a position are stored in four words: two packed matches, the offset of the
// short match, and the repeat lengths of the first two matches.
GOMPFS_FUNCTION unsigned pack_repeat_lengths(unsigned of_nearest, unsigned of_best) {
    return of_nearest | of_best << 16;
}

// A match that is offered, as one number, so that the smallest number is the cheapest match: its
// cost, which candidate it is, and its length. Of equally cheap matches the longest of the first
// candidate is taken.
constexpr int kItemShift = 11;
constexpr unsigned kItemMask = (1u << kItemShift) - 1;
// Makes costs positive, which are relative to the cost of the next position. It is larger than the
// cost of the longest match's bytes as literals.
constexpr int kItemBias = 1 << 16;
constexpr int kNoItem = 1 << 30;

GOMPFS_FUNCTION int pack_item(int cost, unsigned candidate, unsigned length) {
    return (cost + kItemBias) << kItemShift |
           static_cast<int>(candidate << kWayLengthBits | (kWayLengthMask - length));
}
GOMPFS_FUNCTION int cost_of_item(int item) { return (item >> kItemShift) - kItemBias; }

// A choice is the next step of the way from a position, after literals of a class, in 16 bits: the
// candidate and length of the cheapest match, as in an item, and for each state of the class
// whether the match is taken.
GOMPFS_FUNCTION unsigned taken_bit(int state) { return 1u << (kItemShift + state_in_class(state)); }
GOMPFS_FUNCTION unsigned choice_length(unsigned choice) {
    return kWayLengthMask - (choice & kWayLengthMask);
}
GOMPFS_FUNCTION unsigned choice_candidate(unsigned choice) { return choice >> kWayLengthBits & 3; }

// A repeat is the next step at the end of a match with a certain offset, in 64 bits: repeat it,
// after how many literals, for how many bytes, and what that gains. 0 for nothing.
GOMPFS_FUNCTION unsigned long long pack_repeat(const WayMatch& match, int gain) {
    return match.offset | match.repeat_literals << kWayOffsetBits |
           match.repeat_length << (kWayOffsetBits + kRepeatLiteralBits) |
           static_cast<unsigned long long>(gain) << 32;
}
GOMPFS_FUNCTION unsigned repeat_offset(unsigned long long repeat) {
    return static_cast<unsigned>(repeat) & kWayOffsetMask;
}
GOMPFS_FUNCTION unsigned repeat_literals(unsigned long long repeat) {
    return static_cast<unsigned>(repeat) >> kWayOffsetBits & 7;
}
GOMPFS_FUNCTION unsigned repeat_length(unsigned long long repeat) {
    return static_cast<unsigned>(repeat) >> (kWayOffsetBits + kRepeatLiteralBits);
}
// Returns the gain of a match with this offset.
GOMPFS_FUNCTION int repeat_gain(unsigned long long repeat, unsigned offset) {
    return repeat_offset(repeat) == offset ? static_cast<int>(repeat >> 32) : 0;
}

// Costs of symbols from their counts, in 1/64 bit.
constexpr int kBitCost = 64;
constexpr int kMinSymbolCost = kBitCost / 2;
constexpr int kMaxSymbolCost = 13 * kBitCost;

// The information content of a symbol, which Huffman codewords approximate, from the logarithms of
// twice the sum of all counts and of twice its count. A symbol that did not occur has a finite
// cost, as if it had occurred half a time, so that a parser may use it.
GOMPFS_FUNCTION int symbol_cost(int log2_of_twice_total, int log2_of_twice_count) {
    const int cost = (log2_of_twice_total - log2_of_twice_count) * kBitCost / kLog2One;
    return cost < kMinSymbolCost ? kMinSymbolCost : cost > kMaxSymbolCost ? kMaxSymbolCost : cost;
}

// The bits after the codeword of a token, and of an offset.
GOMPFS_FUNCTION int token_extra_bits(int symbol) {
    return kLiteralClassExtraBits[symbol / kNumMatchClasses] +
           kMatchClassExtraBits[symbol % kNumMatchClasses];
}
GOMPFS_FUNCTION int offset_extra_bits(int symbol) {
    return symbol > kOffsetSymbolRepeat ? (symbol - 1) / 2 : 0;
}

// The cost of a symbol with its extra bits, in 1/kCostOfBit bit.
GOMPFS_FUNCTION int way_cost(int cost_of_symbol, int num_extra_bits) {
    constexpr int kUnit = kBitCost / kCostOfBit;
    return (cost_of_symbol + kUnit / 2) / kUnit + kCostOfBit * num_extra_bits;
}

// The same in the first pass: usual lengths of the codewords in text, source code and records.
GOMPFS_FUNCTION int first_token_cost(int symbol) {
    const int literal_class = symbol / kNumMatchClasses, match_class = symbol % kNumMatchClasses;
    const int literal_bits = literal_class == 0                                               ? 1
                             : literal_class == 3 || literal_class == 4 || literal_class == 7 ? 4
                                                                                              : 3;
    const int match_bits = match_class == 0 ? 6 : match_class < 8 ? 3 : match_class < 17 ? 5 : 6;
    return kCostOfBit * (literal_bits + match_bits + token_extra_bits(symbol));
}
GOMPFS_FUNCTION int first_offset_cost(int symbol) {
    return kCostOfBit * (symbol == kOffsetSymbolRepeat ? 3
                         : symbol < 6                  ? 6
                                                       : 4 + offset_extra_bits(symbol));
}

// The symbol of an offset that does not repeat the one before.
GOMPFS_FUNCTION unsigned offset_symbol(unsigned offset) {
    const unsigned octave = static_cast<unsigned>(bits_of(offset + 1)) - 1;
    return 2 * octave - 1 + ((offset + 1) >> (octave - 1) & 1);
}

}  // namespace gompfs

// The rules of the lazy parser that the CPU (native/codec/parse/lazy_parser.cpp) and the kernels of
// kernels/encode share, so that both cut a block into the same sequences: hashes, and the costs by
// which matches are compared. All costs are integers.
//
// CUDA and C++ both include this file.
#pragma once

#include "shared/format_constants.h"
#include "shared/host_device.h"

namespace gompfs {

// Links between positions: the largest block whose positions are 16 bits wide, the bits of the
// hashes of four bytes in blocks up to that size and in larger ones, and of three bytes.
constexpr unsigned kMaxNarrowBlock = 1u << 16;
constexpr int kNarrowHashBits = 16;
constexpr int kWideHashBits = 17;
constexpr int kShortHashBits = 15;

// Hashes load this many bytes.
constexpr unsigned kHashedLength = 4;
// The length of matches that are found by a hash of three bytes.
constexpr unsigned kShortLength = 3;

// Estimated costs are in 1/8 bit.
constexpr int kCostOfBit = 8;
constexpr int kMinLiteralCost = 2 * kCostOfBit;
constexpr int kMaxLiteralCost = 11 * kCostOfBit;
// Sums of costs are kept modulo 2^16.
static_assert(kMaxLiteralCost * kBitMaxMatchLength < 1 << 16);

// A match of three bytes must gain more than this.
constexpr int kMinShortGain = kCostOfBit;
// The extra gain by which a match must beat the previous one, per literal before it: 2.5 bits.
constexpr int kLazyBias = 5 * kCostOfBit / 2;
// The parser steps one position farther for each so many positions without a match.
constexpr unsigned kMissesToSkipLog2 = 4;
constexpr unsigned kMissesToSkipSlowlyLog2 = 8;

// The hash of four bytes, and that of the lower three; `bytes` is in little-endian order.
GOMPFS_FUNCTION unsigned hash_four(unsigned bytes, int bits) {
    return (bytes * 2654435761u) >> (32 - bits);
}
GOMPFS_FUNCTION unsigned hash_three(unsigned bytes, int bits) {
    return ((bytes << 8) * 506832829u) >> (32 - bits);
}

// The number of bits of a positive number.
GOMPFS_FUNCTION int bits_of(unsigned number) {
#ifdef __CUDA_ARCH__
    return 32 - __clz(static_cast<int>(number));
#else
    return 32 - __builtin_clz(number);
#endif
}

// Logarithms as integers: std::log2 may differ in the last bit between libraries. They are in
// 1/256.
constexpr int kLog2One = 256;

// 256 * log2(1 + fraction / 256), rounded down: each squaring of the mantissa gives one more bit.
GOMPFS_FUNCTION int log2_of_mantissa(unsigned fraction) {
    unsigned long long mantissa = static_cast<unsigned long long>(256 + fraction) << 22;
    int logarithm = 0;
    for (int bit = 7; bit >= 0; --bit) {
        mantissa = mantissa * mantissa >> 30;  // 1 is 1 << 30
        if (mantissa >> 31 != 0) {
            mantissa >>= 1;
            logarithm |= 1 << bit;
        }
    }
    return logarithm;
}

// The eight bits after the highest 1 bit of a positive number, with zeros in place of missing ones.
GOMPFS_FUNCTION unsigned fraction_of(unsigned number) {
    const int octave = bits_of(number) - 1;
    return (octave >= 8 ? number >> (octave - 8) : number << (8 - octave)) & 255;
}

// The cost of a byte as a literal, from logarithms (kLog2One) of its share of the block: 1.2 - 0.9
// * log2(share) bits, within bounds. Costs are flatter than the information of the bytes, because
// rare bytes are more likely to be literals.
GOMPFS_FUNCTION int literal_cost(int log2_of_total, int log2_of_count) {
    const int information = log2_of_total - log2_of_count;
    const int cost = (12 * kLog2One + 9 * information) * kCostOfBit / (10 * kLog2One);
    return cost < kMinLiteralCost   ? kMinLiteralCost
           : cost > kMaxLiteralCost ? kMaxLiteralCost
                                    : cost;
}

// Returns the cost of a match without its offset.
template <bool kEntropyCoded>
GOMPFS_FUNCTION int match_length_cost(unsigned length) {
    if (kEntropyCoded) {
        return kCostOfBit * (6 + (length < 19 ? 0 : bits_of(length) - 3));
    }
    return kCostOfBit * (length >= kByteMatchEscape + kByteMinMatchLength - 1 ? 32 : 24);
}

// Offsets that short usually repeat: they are the sizes of numbers and records.
constexpr unsigned kRecordOffset = 8;
constexpr int kRepeatCost = 2 * kCostOfBit;

template <bool kEntropyCoded>
GOMPFS_FUNCTION int match_offset_cost(unsigned offset) {
    if (kEntropyCoded) {
        return offset <= kRecordOffset ? kRepeatCost : kRepeatCost + kCostOfBit * bits_of(offset);
    }
    return 0;
}

// The cost of a literal without entropy coding.
constexpr int kPlainLiteralCost = 8 * kCostOfBit;

}  // namespace gompfs

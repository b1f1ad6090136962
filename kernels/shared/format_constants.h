// The numbers of docs/format.md that decoders share; gompfs/codec/constants.py holds the same ones,
// and a test compares the two. Plain constants only: CUDA and C++ include this file alike.
#pragma once

// Tables that kernels index at run time must lie in device memory.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GOMPFS_TABLE __device__
#else
#define GOMPFS_TABLE
#endif

namespace gompfs {

constexpr int kBlockHeaderSize = 32;
constexpr int kMaxBlockSize = 1 << 20;

// Content bytes for each byte of payload, at most: a match of 426 bytes takes 10 bits.
constexpr int kMaxExpansion = 341;

// Sequences whose matches may be resolved at once hold no dependency on each other: a group.
constexpr int kMinGroupSizeLog2 = 2;
constexpr int kMaxGroupSizeLog2 = 5;

// Payload flags.
constexpr int kFlagDependencyElimination = 1;

// One sub-block per lane of a warp; sequence or literal i belongs to sub-block i % kNumSubBlocks.
constexpr int kNumSubBlocks = 32;

// gompresso-byte: a token is literal_length (3 bits), then match code (5 bits).
constexpr int kByteHeaderSize = 16;
constexpr int kByteMinMatchLength = 4;
constexpr int kByteLiteralEscape = 7;
constexpr int kByteMatchShift = 3;
constexpr int kByteMatchEscape = 31;
constexpr int kByteMaxLiteralLength = kByteLiteralEscape + 255;
constexpr int kByteMaxMatchLength = kByteMatchEscape + kByteMinMatchLength - 1 + 255;
constexpr int kByteMaxMatchOffset = 65535;

// gompresso-bit: three canonical codes, over literals, tokens and offset classes.
constexpr int kBitHeaderSize = 24;
constexpr int kBitPadding = 8;
constexpr int kBitMinMatchLength = 3;
constexpr int kNumLiteralSymbols = 256;
constexpr int kNumTokenSymbols = 256;
constexpr int kNumOffsetSymbols = 40;
constexpr int kMaxLiteralBits = 10;
constexpr int kMaxTokenBits = 10;
constexpr int kMaxOffsetBits = 9;
// Sub-block sizes are written with at most so many bits each.
constexpr int kMaxSizeWidth = 24;

// A token symbol is literal class << 5 | match class; a class is a base value and a number of extra
// bits.
constexpr int kNumLiteralClasses = 8;
constexpr int kNumMatchClasses = 32;
GOMPFS_TABLE constexpr unsigned short kLiteralClassBase[kNumLiteralClasses] = {0, 1, 2, 3,
                                                                               4, 5, 7, 11};
GOMPFS_TABLE constexpr unsigned char kLiteralClassExtraBits[kNumLiteralClasses] = {0, 0, 0, 0,
                                                                                   0, 1, 2, 8};
// Match class 0 means that the sequence has no match.
GOMPFS_TABLE constexpr unsigned short kMatchClassBase[kNumMatchClasses] = {
    0,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,  17,
    18, 19, 21, 23, 25, 27, 31, 35, 39, 43, 51, 59, 67, 75, 107, 171};
GOMPFS_TABLE constexpr unsigned char kMatchClassExtraBits[kNumMatchClasses] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 5, 6, 8};
constexpr int kBitMaxLiteralLength = 11 + 255;
constexpr int kBitMaxMatchLength = 171 + 255;

// Offset symbol 0 repeats the match_offset of the sequence before; symbol 1 + s stands for the
// offsets o with o + 1 in [2^m + b * 2^(m-1), 2^m + (b + 1) * 2^(m-1)), where s = 2 * (m - 1) + b.
constexpr int kOffsetSymbolRepeat = 0;

// Code lengths are themselves coded: 0 to 10 stand for themselves, then runs.
constexpr int kNumLengthSymbols = 14;
constexpr int kLengthFieldBits =
    3;  // the lengths of that code's own codewords come as plain numbers
constexpr int kLengthSymbolRepeat = 11;     // 3 to 6 times the length before, 2 extra bits
constexpr int kLengthSymbolZeros = 12;      // 3 to 10 zeros, 3 extra bits
constexpr int kLengthSymbolManyZeros = 13;  // 11 to 138 zeros, 7 extra bits
constexpr int kMaxLengthBits = 7;

}  // namespace gompfs

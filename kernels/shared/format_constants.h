// The constants of docs/format.md that all decoders share.
// tests/oracle/constants.py holds the same constants, and a test compares the two. This file
// contains plain constants only, because CUDA and C++ both include it.
#pragma once

// Tables that kernels index at run time must be in device memory.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GOMPFS_TABLE __device__
#else
#define GOMPFS_TABLE
#endif

namespace gompfs {

constexpr int kBlockHeaderSize = 32;
constexpr int kMaxBlockSize = 1 << 20;

// The most bytes of content per byte of payload: a match of 426 bytes takes 10 bits.
constexpr int kMaxExpansion = 341;

// A group is a number of consecutive sequences whose matches can be resolved at once, because no
// match depends on another match of the group.
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
// Sizes of sub-blocks are stored with at most this many bits each.
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

// Offset symbol 0 repeats the match_offset of the previous sequence. Symbol 1 + s stands for the
// match offsets o with o + 1 in [2^m + b * 2^(m-1), 2^m + (b + 1) * 2^(m-1)), where s = 2 * (m - 1)
// + b.
constexpr int kOffsetSymbolRepeat = 0;

// gompresso-bit-dictionary: gompresso-bit with more offset symbols, for matches from the
// dictionary. Symbol kNumOffsetSymbols + s has s / 4 extra bits and stands for the addresses from
// ((4 + s % 4)
// << (s / 4)) - 4 on.
constexpr int kNumDictionarySymbols = 73;
constexpr int kMaxDictionarySize = 1 << 20;

// Code lengths are stored under a code of their own. Its symbols 0 to 10 are lengths; the others
// are runs.
constexpr int kNumLengthSymbols = 14;
// The lengths of that code's own codewords are stored as plain numbers of this many bits.
constexpr int kLengthFieldBits = 3;
constexpr int kLengthSymbolRepeat = 11;  // repeats the previous length 3 to 6 times, 2 extra bits
constexpr int kLengthSymbolZeros = 12;   // 3 to 10 zeros, 3 extra bits
constexpr int kLengthSymbolManyZeros = 13;  // 11 to 138 zeros, 7 extra bits
constexpr int kMaxLengthBits = 7;

// gompresso-tadoc: the payload of a block is a header and a stream of ranks. It may exceed its
// content by kTadocMaxOverhead bytes, because a block may be a few bytes long.
constexpr int kTadocHeaderSize = 12;
constexpr int kTadocMaxOverhead = 64;
// The head of a part: a header, token bytes, codes, and a stream of kNumHeadArrays arrays.
constexpr int kHeadHeaderSize = 40;
constexpr int kNumHeadArrays = 13;
constexpr int kMaxHeadPayload = 2 << 20;
// The expansions of all symbols of a part, and of one symbol, in bytes.
constexpr int kMaxPoolSize = 4 << 20;
constexpr int kMaxExpansionSize = 65535;
// A part has fewer symbols than this.
constexpr int kMaxPartSymbols = 1 << 20;
// A number is coded as its class and class / 2 extra bits. The codes field gives a class code as a
// number of lengths, and the lengths.
constexpr int kNumClasses = 62;
constexpr int kMaxClassBits = 11;
constexpr int kNumClassLengthsBits = 6;
constexpr int kClassLengthBits = 4;
// The codes field begins with the number of levels, and the number of rules of each level: at most
// this many ones, a zero, and as many bits as ones.
constexpr int kNumLevelsBits = 5;
constexpr int kMaxLevelSizeBits = 20;
// In the section `words`, each word whose number is a multiple of this shares no prefix.
constexpr int kWordRestart = 256;

}  // namespace gompfs

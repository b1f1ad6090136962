// What the optimal parser of gompresso-bit knows about a way to a position, packed into vectors
// with one number per phase. A phase is the number of sequences in the open group.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "codec/bit_fields.h"
#include "codec/dictionary_search.h"
#include "shared/format_constants.h"

namespace gompfs {

// The cost of a way to a match is shifted left, and the literal class of its sequence is stored in
// the low bits: the minimum of several ways then also tells its class.
constexpr int kClassShift = 3;
constexpr std::int32_t kClassMask = (1 << kClassShift) - 1;
static_assert(kNumLiteralClasses == 1 << kClassShift);

// Classes below this one are the literal length itself. The last class has no upper limit.
constexpr int kFirstWideClass = 5;
constexpr int kLongClass = kNumLiteralClasses - 1;
static_assert(kLiteralClassBase[kFirstWideClass] == kFirstWideClass && kLongClass == 7);
constexpr std::uint32_t kLongLength = kLiteralClassBase[kLongClass];
constexpr std::uint32_t kMaxLiterals = kBitMaxLiteralLength;
constexpr std::uint32_t kMinMatch = kBitMinMatchLength;

// The literal lengths that the classes 5, 6 and 7 stand for before a position, packed into one
// number.
constexpr int kLengthsShift[] = {0, 4, 8};
constexpr std::uint32_t kLengthsMask[] = {15, 15, 511};

// A sequence: literal class, match length, match offset.
constexpr std::int32_t pack_link(std::uint32_t match_length, std::uint32_t match_offset) {
    return static_cast<std::int32_t>(match_offset << 12 | match_length << kClassShift);
}
// A match from the dictionary has the number of its candidate (MatchTable::from_dictionary) in
// place of its offset, which has no space there. The numbers begin here; with a dictionary no match
// offset is as great.
constexpr std::uint32_t kFirstCandidate = (1u << 20) - DictionarySearch::kMaxFound;
constexpr bool is_candidate(std::uint32_t offset) { return offset >= kFirstCandidate; }

constexpr std::uint32_t link_literal_class(std::uint32_t link) { return link & kClassMask; }
constexpr std::uint32_t link_match_length(std::uint32_t link) { return link >> kClassShift & 511; }
constexpr std::uint32_t link_match_offset(std::uint32_t link) { return link >> 12; }

// The progress of a row: its number of sequences so far, and its last match offset.
constexpr std::int32_t pack_row(std::uint32_t num_sequences, std::uint32_t last_offset) {
    return static_cast<std::int32_t>(last_offset << 5 | num_sequences);
}
constexpr std::uint32_t row_last_offset(std::int32_t row) {
    return static_cast<std::uint32_t>(row) >> 5;
}
constexpr std::int32_t row_after(std::int32_t row, std::uint32_t match_offset) {
    const std::uint32_t num_sequences = (static_cast<std::uint32_t>(row) + 1) % kNumSubBlocks;
    const bool is_repeatable = match_offset != 0 && !is_candidate(match_offset);
    const std::uint32_t last_offset = is_repeatable ? match_offset : row_last_offset(row);
    return pack_row(num_sequences, num_sequences == 0 ? 0 : last_offset);
}
static_assert(kNumSubBlocks == 1 << 5);

constexpr std::uint32_t kNumPhases = 1u << kDefaultGroupSizeLog2;
constexpr std::uint32_t phase_after(std::uint32_t phase) { return (phase + 1) % kNumPhases; }
constexpr std::uint32_t phase_before(std::uint32_t phase) {
    return (phase + kNumPhases - 1) % kNumPhases;
}

// A number per phase.
typedef std::int32_t Lanes __attribute__((vector_size(sizeof(std::int32_t) * kNumPhases)));

inline Lanes all(std::int32_t value) { return value - Lanes{}; }
inline Lanes lower(const Lanes& left, const Lanes& right) { return left < right ? left : right; }

inline bool any(const Lanes& mask) {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(mask);
    return (halves[0] | halves[1]) != 0;
}

inline std::int32_t least(const Lanes& lanes) {
    return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

}  // namespace gompfs

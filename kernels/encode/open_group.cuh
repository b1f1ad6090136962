// The open group of sequences: which sources of matches are legal under dependency elimination.
//
// A source lies below the high-water mark, where the group began, or consists of literals of the
// group (docs/format.md). So the matches of the group are kept, at most 32.
#pragma once

#include "encode/parse_batch.cuh"

namespace gompfs {

constexpr u32 kMaxGroupSize = 1u << kMaxGroupSizeLog2;

// The rule: kStrict is that of the Gompresso paper, which allows no source in the group.
enum class SourceRule { kAny, kUsual, kStrict };

// The open group of a warp's block, in shared memory.
struct OpenGroup {
    u32 high_water_mark;  // output below it is final
    u32 num_matches;
    u32 begins[kMaxGroupSize];  // of the matches
    u32 ends[kMaxGroupSize];

    // Begins a new group, where all output is final. One lane calls it.
    __device__ void restart(u32 position) {
        high_water_mark = position;
        num_matches = 0;
    }

    // One lane calls it.
    __device__ void add(u32 begin, u32 end) {
        begins[num_matches] = begin;
        ends[num_matches] = end;
        ++num_matches;
    }

    // The length that a match may have. The bytes between the last match and `position` will be
    // literals of the group if the match is taken.
    __device__ u32 legal_length(SourceRule rule, u32 position, const Match& match) const {
        const u32 source = position - match.offset;
        if (rule == SourceRule::kAny || source + match.length <= high_water_mark) {
            return match.length;
        }
        const u32 begin = max(source, high_water_mark);
        if (rule == SourceRule::kStrict) {
            return begin - source;
        }
        u32 end = max(begin, min(source + match.length, position));
        for (u32 index = num_matches; index-- != 0 && ends[index] > begin;) {
            end = min(end, max(begin, begins[index]));
        }
        return end - source;
    }

    // Sources of matches that end here or before are legal, whatever the group has.
    __device__ u32 safe_end(SourceRule rule, u32 position) const {
        if (rule == SourceRule::kStrict) {
            return high_water_mark;
        }
        return num_matches != 0 ? min(begins[0], position) : position;
    }
};

}  // namespace gompfs

// The open group of sequences: which sources of matches are legal under dependency elimination.
//
// A source lies below the high-water mark, where the group began, or consists of literals of the
// group (docs/format.md). So the matches of the group are kept, at most 32.
#pragma once

#include "encode/parse_batch.cuh"

namespace gompfs {

constexpr u32 kMaxGroupSize = 1u << kMaxGroupSizeLog2;

// The matches of the open group, in shared memory: where each begins, and where it ends.
struct GroupMatches {
    u32 begins[kMaxGroupSize];
    u32 ends[kMaxGroupSize];
};

// The rule: kStrict is that of the Gompresso paper, which allows no source in the group.
enum class SourceRule { kAny, kUsual, kStrict };

class OpenGroup {
  public:
    __device__ OpenGroup(GroupMatches& matches, SourceRule rule) : matches_(matches), rule_(rule) {}

    __device__ u32 high_water_mark() const { return high_water_mark_; }

    // Begins a new group, where all output is final.
    __device__ void restart(u32 position) {
        high_water_mark_ = position;
        num_matches_ = 0;
    }

    // Adds a match. All lanes must call it.
    __device__ void add(u32 begin, u32 end) {
        __syncwarp();  // after the lanes have read the matches of the group before
        if (lane_id() == 0) {
            matches_.begins[num_matches_] = begin;
            matches_.ends[num_matches_] = end;
        }
        ++num_matches_;
        __syncwarp();
    }

    // Whether a match is legal whatever the group has.
    __device__ bool is_surely_legal(u32 position, const Match& match) const {
        return rule_ == SourceRule::kAny ||
               position - match.offset + match.length <= high_water_mark_ || match.length == 0;
    }

    // The length that a match may have. The bytes between the last match and `position` will be
    // literals of the group if the match is taken.
    __device__ u32 legal_length(u32 position, const Match& match) const {
        const u32 source = position - match.offset;
        if (rule_ == SourceRule::kAny || source + match.length <= high_water_mark_) {
            return match.length;
        }
        const u32 begin = max(source, high_water_mark_);
        if (rule_ == SourceRule::kStrict) {
            return begin - source;
        }
        u32 end = max(begin, min(source + match.length, position));
        for (u32 index = num_matches_; index-- != 0 && matches_.ends[index] > begin;) {
            end = min(end, max(begin, matches_.begins[index]));
        }
        return end - source;
    }

    // Sources of matches that end here or before are legal, whatever the group has.
    __device__ u32 safe_end(u32 position) const {
        if (rule_ == SourceRule::kStrict) {
            return high_water_mark_;
        }
        return num_matches_ != 0 ? min(matches_.begins[0], position) : position;
    }

  private:
    GroupMatches& matches_;
    SourceRule rule_;
    u32 high_water_mark_ = 0;  // output below it is final for the open group
    u32 num_matches_ = 0;
};

}  // namespace gompfs

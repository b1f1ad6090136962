// Walks over the best matches of a block and cuts it into sequences, as
// native/codec/lazy_parser.cpp does.
//
// The lanes look at 32 positions at once, each at one. They agree by votes and shuffles on the
// first position with a match, and whether a later one has a better match. Then they add a
// sequence, and look at the 32 positions after it.
//
// What the parser takes at a position depends on the open group and the last offset. Usually it is
// the match that find_matches found. A lane is pending if that match may not be legal, or if a
// match may repeat the last offset. It then chooses as the CPU does, but only if the walk comes to
// its position: that is slow, and rare.
//
// Launch: CTAs of kWalkThreads threads, a warp per block.
// Mapping: lane i looks at the i-th position of a window.
// Reads: the content of block i at content + i * block_size; links, short_links, sums and matches
//   at i * items_per_block(block_size). short_links is not used unless finds_short, and sums not
//   without entropy coding (is_bit).
// Writes: the sequences of block i (shared/packed_sequence.h) at sequences + i * max_sequences, and
//   num_sequences[i].
// Shared memory: kWalkBytes.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 7 bytes after the content are readable. max_sequences is what most_sequences in
//   gompfs/gpu/parser.py returns.
// Fails: never.
// Oracle: native/codec/lazy_parser.cpp (tests/conformance/parse_cases.py).
// Caller: gompfs/gpu/parser.py.
#include "encode/choose_match.cuh"
#include "shared/packed_sequence.h"

namespace gompfs {

constexpr u32 kWalkWarps = 4;
constexpr u32 kWalkThreads = kWalkWarps * kWarpSize;
constexpr unsigned kWalkBytesPerWarp = 384;
static_assert(sizeof(WalkShared<u16>) <= kWalkBytesPerWarp);
static_assert(sizeof(WalkShared<u32>) <= kWalkBytesPerWarp);
constexpr unsigned kWalkBytes = kWalkWarps * kWalkBytesPerWarp;

// The lowest of a set of lanes, or kWarpSize if there is none.
__device__ inline u32 first_of(u32 lanes) {
    return lanes == 0 ? kWarpSize : static_cast<u32>(__ffs(static_cast<int>(lanes))) - 1;
}

// The sequences of a block so far. All lanes have the same values.
class Sequences {
  public:
    __device__ explicit Sequences(u64* out) : out_(out) {}

    __device__ u32 count() const { return count_; }

    __device__ void push(u32 literal_length, u32 match_length, u32 match_offset) {
        if (lane_id() == 0) {
            out_[count_] = match_offset |
                           static_cast<u64>(match_length) << kPackedMatchLengthShift |
                           static_cast<u64>(literal_length) << kPackedLiteralLengthShift;
        }
        ++count_;
    }

  private:
    u64* out_;
    u32 count_ = 0;
};

// All lanes have the same values of all members, except for choice_ and is_pending_. At most two
// positions after a match are looked at for a better one.
template <typename Position, bool kEntropyCoded>
class Walk {
  public:
    // `shared` has the block, its arrays and the rules.
    __device__ Walk(WalkShared<Position>& shared, const WalkRules& rules, u64* sequences)
        : shared_(shared),
          size_(shared.block.size),
          num_linked_(shared.block.num_linked),
          matches_(shared.input.matches),
          text_(shared.block.content),
          rules_(rules),
          sequences_(sequences) {
        restart_group();
        set_last_offset(0);
    }

    // Cuts the block. Returns the number of sequences.
    __device__ u32 run();

  private:
    __device__ void look();
    __device__ void vote();
    __device__ void choose_pending(u32 first, u32 last);
    __device__ bool find_first(u32& lane);
    __device__ u32 defer(u32 lane);
    __device__ void end_long_literals();
    __device__ void emit(u32 position, u32 length, u32 offset);
    __device__ void push(u32 literal_length, u32 match_length, u32 match_offset);
    __device__ void restart_group();
    __device__ void set_last_offset(u32 offset);

    WalkShared<Position>& shared_;
    u32 size_;
    u32 num_linked_;
    const u64* matches_;
    Text text_;
    WalkRules rules_;
    Sequences sequences_;
    u32 position_ = 0;         // of lane 0 in the window
    u32 anchor_ = 0;           // start of the literals that belong to no sequence yet
    u32 num_misses_ = 0;       // number of searches in a row without a match
    u32 high_water_mark_ = 0;  // these two as in shared_
    u32 last_offset_ = 0;
    Choice choice_{};
    bool is_pending_ = false;
    // Lanes whose position has a match; those that must choose it when the walk comes to them;
    // those with a match that is taken at once; and those with a better match at the next position,
    // or at the second next. Where a lane or one of these two is pending, the last two may be
    // wrong.
    u32 have_match_ = 0;
    u32 pending_ = 0;
    u32 is_nice_ = 0;
    u32 better_next_ = 0;
    u32 better_second_ = 0;
};

// Looks at the 32 positions from position_ on. Only finds out which of them must choose.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::look() {
    const u32 position = position_ + lane_id();
    choice_ = Choice{};
    is_pending_ = false;
    if (position < num_linked_) {
        const Match found = unpack_match(matches_[position]);
        choice_ = {found, found.length == kShortLength ? 0 : found.gain};
        const bool is_legal = rules_.source_rule == SourceRule::kAny || found.length == 0 ||
                              position - found.offset + found.length <= high_water_mark_;
        is_pending_ = !is_legal || (kEntropyCoded && may_repeat(text_, position, last_offset_));
    }
    vote();
}

template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::vote() {
    const u32 lane = lane_id();
    const Match& match = choice_.match;
    have_match_ = __ballot_sync(kAllLanes, match.length != 0);
    pending_ = __ballot_sync(kAllLanes, is_pending_);
    is_nice_ = __ballot_sync(kAllLanes, match.length >= rules_.search.nice_length);
    const int next = __shfl_sync(kAllLanes, choice_.long_gain, lane + 1);
    better_next_ = __ballot_sync(kAllLanes, next > match.gain + kLazyBias);
    if (rules_.lazy_steps > 1) {
        const int second = __shfl_sync(kAllLanes, choice_.long_gain, lane + 2);
        better_second_ = __ballot_sync(kAllLanes, second > match.gain + 2 * kLazyBias);
    }
}

// The lanes from `first` to `last` choose their matches, if they have not yet. All lanes must call
// it.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::choose_pending(u32 first, u32 last) {
    const u32 lane = lane_id();
    if (lane >= first && lane <= last && is_pending_) {
        choice_ = choose_match<Position, kEntropyCoded>(shared_, position_ + lane, choice_.match);
        is_pending_ = false;
    }
    vote();
}

// Finds the first position that the parser takes a match at: its lane in the window. Otherwise
// moves the window and returns false.
template <typename Position, bool kEntropyCoded>
__device__ inline bool Walk<Position, kEntropyCoded>::find_first(u32& lane) {
    for (lane = 0; lane < kWarpSize;) {
        const u32 next = first_of((have_match_ | pending_) >> lane << lane);
        if (!rules_.ends_literals && num_misses_ + next - lane < 1u << rules_.misses_to_skip_log2) {
            // No position is skipped before the first with a match.
            num_misses_ += next - lane;
            lane = next;
            if (lane == kWarpSize) {
                break;
            }
        }
        if (pending_ >> lane & 1) {
            choose_pending(lane, lane + rules_.lazy_steps);
        }
        if (have_match_ >> lane & 1) {
            return true;
        }
        lane += 1 + (++num_misses_ >> rules_.misses_to_skip_log2);
        if (rules_.ends_literals) {
            break;  // the sequences that this may add change what the other lanes have seen
        }
    }
    position_ = min(position_ + lane, size_);
    end_long_literals();
    return false;
}

// Goes on from the match of `lane` to a better one after it, as long as there is one. To do so, it
// may move the window. Returns the lane of the last one.
template <typename Position, bool kEntropyCoded>
__device__ inline u32 Walk<Position, kEntropyCoded>::defer(u32 lane) {
    const u32 most = rules_.lazy_steps;
    while (most != 0 && (is_nice_ >> lane & 1) == 0) {
        if (lane + most >= kWarpSize) {
            position_ += lane;
            lane = 0;
            look();
            if (pending_ & 1) {
                choose_pending(0, most);
            }
        }
        if (pending_ & ((1u << most) - 1) << (lane + 1)) {
            choose_pending(lane + 1, lane + most);
        }
        const u32 step = better_next_ >> lane & 1 ? 1 : better_second_ >> lane & 1 ? 2 : 0;
        if (step == 0) {
            break;
        }
        lane += step;
    }
    return lane;
}

// These three change what all lanes read from shared memory.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::restart_group() {
    high_water_mark_ = anchor_;
    if (lane_id() == 0) {
        shared_.group.restart(anchor_);
    }
}

template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::set_last_offset(u32 offset) {
    last_offset_ = offset;
    if (lane_id() == 0) {
        shared_.last_offset = offset;
    }
}

// Adds a sequence that ends at anchor_.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::push(u32 literal_length, u32 match_length,
                                                           u32 match_offset) {
    sequences_.push(literal_length, match_length, match_offset);
    __syncwarp();  // no lane chooses any more
    if (match_length != 0) {
        set_last_offset(match_offset);
        if (lane_id() == 0) {
            shared_.group.add(anchor_ - match_length, anchor_);
        }
    }
    if (sequences_.count() % kNumSubBlocks == 0) {
        set_last_offset(0);
    }
    if (sequences_.count() % (1u << rules_.group_size_log2) == 0) {
        restart_group();
    }
    __syncwarp();
}

// Under the strict rule, a group must end before anything can be copied from it, also if it finds
// no match. So literals become sequences as they come, and short ones in the first group.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::end_long_literals() {
    while (rules_.ends_literals) {
        const u32 most = high_water_mark_ == 0 ? kFirstStrictLiterals : rules_.max_literal_length;
        if (position_ - anchor_ < most) {
            return;
        }
        anchor_ += most;
        push(most, 0, 0);
    }
}

// Adds the literals from anchor_ to `position`, then the match. A literal string too long for one
// sequence takes several.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::emit(u32 position, u32 length, u32 offset) {
    while (position - anchor_ > rules_.max_literal_length) {
        anchor_ += rules_.max_literal_length;
        push(rules_.max_literal_length, 0, 0);
    }
    const u32 literal_length = position - anchor_;
    anchor_ = position + length;
    push(literal_length, length, offset);
}

template <typename Position, bool kEntropyCoded>
__device__ inline u32 Walk<Position, kEntropyCoded>::run() {
    while (position_ < num_linked_) {
        look();
        u32 lane = 0;
        if (!find_first(lane)) {
            continue;
        }
        num_misses_ = 0;
        lane = defer(lane);
        emit(position_ + lane, __shfl_sync(kAllLanes, choice_.match.length, lane),
             __shfl_sync(kAllLanes, choice_.match.offset, lane));
        position_ = anchor_;
    }
    if (anchor_ < size_) {
        emit(size_, 0, 0);
    }
    return sequences_.count();
}

// What the kernels get; the pointers are those of the batch.
template <typename Position>
struct WalkBatch {
    const u8* content;
    u64 content_size;
    u32 block_size;
    WalkInput<Position> input;
    u64* sequences;
    u32* num_sequences;
    u32 max_sequences;
};

template <typename Position>
__device__ inline void walk_batch(const WalkBatch<Position>& batch, bool is_bit,
                                  const WalkRules& rules, uint4* shared_memory) {
    const u32 warp = threadIdx.x / kWarpSize;
    const u32 index = blockIdx.x * kWalkWarps + warp;
    if (static_cast<u64>(index) * batch.block_size >= batch.content_size) {
        return;
    }
    WalkShared<Position>& shared = *reinterpret_cast<WalkShared<Position>*>(
        shared_memory + warp * (kWalkBytesPerWarp / sizeof(uint4)));
    const u64 first = index * items_per_block(batch.block_size);
    if (lane_id() == 0) {
        shared.block = block_of(index, batch.content, batch.content_size, batch.block_size);
        shared.input = {batch.input.links + first,
                        rules.search.finds_short ? batch.input.short_links + first : nullptr,
                        is_bit ? batch.input.sums + first : nullptr, batch.input.matches + first};
        shared.rules = rules;
    }
    __syncwarp();
    u64* const sequences = batch.sequences + static_cast<u64>(index) * batch.max_sequences;
    const u32 count = is_bit ? Walk<Position, true>(shared, rules, sequences).run()
                             : Walk<Position, false>(shared, rules, sequences).run();
    if (lane_id() == 0) {
        batch.num_sequences[index] = count;
    }
}

// The settings as kernels get them: in the order of the fields of WalkSettings in
// gompfs/gpu/parser.py.
struct WalkSettings {
    u32 chain_length, nice_length, max_match_length, max_match_offset, finds_short, lazy_steps,
        skips, max_literal_length, min_match_length, group_size_log2, dependency_elimination,
        strict_sources;
};

__device__ inline WalkRules walk_rules(const WalkSettings& settings) {
    return {{settings.chain_length, settings.nice_length, settings.max_match_length,
             settings.max_match_offset, settings.finds_short != 0},
            settings.lazy_steps,
            settings.skips != 0 ? kMissesToSkipLog2 : kMissesToSkipSlowlyLog2,
            settings.max_literal_length,
            settings.min_match_length,
            settings.group_size_log2,
            settings.dependency_elimination == 0 ? SourceRule::kAny
            : settings.strict_sources == 0       ? SourceRule::kUsual
                                                 : SourceRule::kStrict,
            settings.strict_sources != 0};
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kWalkThreads)
    walk_narrow(const unsigned char* content, unsigned long long content_size,
                unsigned int block_size, const unsigned short* links,
                const unsigned short* short_links, const unsigned short* sums,
                const unsigned long long* matches, const unsigned int* settings,
                unsigned int is_bit, unsigned long long* sequences, unsigned int* num_sequences,
                unsigned int max_sequences) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    walk_batch(WalkBatch<u16>{content,
                              content_size,
                              block_size,
                              {links, short_links, sums, matches},
                              sequences,
                              num_sequences,
                              max_sequences},
               is_bit != 0, walk_rules(*reinterpret_cast<const WalkSettings*>(settings)),
               shared_memory);
}

extern "C" __global__ void __launch_bounds__(gompfs::kWalkThreads)
    walk_wide(const unsigned char* content, unsigned long long content_size,
              unsigned int block_size, const unsigned int* links, const unsigned int* short_links,
              const unsigned short* sums, const unsigned long long* matches,
              const unsigned int* settings, unsigned int is_bit, unsigned long long* sequences,
              unsigned int* num_sequences, unsigned int max_sequences) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    walk_batch(WalkBatch<u32>{content,
                              content_size,
                              block_size,
                              {links, short_links, sums, matches},
                              sequences,
                              num_sequences,
                              max_sequences},
               is_bit != 0, walk_rules(*reinterpret_cast<const WalkSettings*>(settings)),
               shared_memory);
}

// Walks over the best matches of a block and cuts it into sequences, as
// native/codec/lazy_parser.cpp does. Without a rule for sources, walk_segments.cu is faster.
//
// kWalkLanes lanes look at a window of as many positions, each at one. By votes they all know the
// first position with a match, and whether a later one has a better match. Then they add a
// sequence, and look at the positions after it.
//
// What the parser takes at a position depends on the open group and the last offset. Usually it is
// the match that find_matches found. A lane is pending if that match may not be legal, or if a
// match may repeat the last offset. It then chooses as the CPU does, but only if the walk comes to
// its position: that is slow, and rare.
//
// Launch: CTAs of kWalkThreads threads, kWalkLanes of them per block.
// Mapping: lane i of a block looks at the i-th position of a window.
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
constexpr u32 kWalkCtas = 8;  // of a multiprocessor, which allows 64 registers
// Lanes that work on a block. Blocks that share a warp take their steps at the same time.
constexpr u32 kWalkLanes = 32;
constexpr u32 kBlocksPerWarp = kWarpSize / kWalkLanes;
constexpr unsigned kWalkBytesPerBlock = 384;
static_assert(sizeof(WalkShared<u16>) <= kWalkBytesPerBlock);
static_assert(sizeof(WalkShared<u32>) <= kWalkBytesPerBlock);
constexpr unsigned kWalkBytes = kWalkWarps * kBlocksPerWarp * kWalkBytesPerBlock;
constexpr u32 kMaxLazySteps = 2;

// What is known about the positions of a window: a bit for each.
struct Window {
    u32 have_match;
    u32 pending;  // the lane must choose its match if the walk comes to its position
    u32 is_nice;  // the match is taken at once
    // There is a better match at the next position, or at the second next. Where one of the three
    // is pending, this may be wrong.
    u32 better_next;
    u32 better_second;
};

enum class Outcome {
    kMatch,    // the match of `lane` is taken
    kNoMatch,  // the walk comes to the position of `lane`, which may lie after the window
    kMove,     // the same, and there is a match, but the window ends too early to take it
    kPending,  // the lanes `wanted` must choose
};

struct WalkStep {
    Outcome outcome;
    u32 lane;
    u32 num_misses;
    u32 wanted;
};

// The lowest of a set of lanes, or kWalkLanes if there is none.
__device__ inline u32 first_of(u32 lanes) {
    return lanes == 0 ? kWalkLanes : static_cast<u32>(__ffs(static_cast<int>(lanes))) - 1;
}

// Goes on from the match of `lane` to a better one after it, as long as there is one.
__device__ inline WalkStep find_better(const Window& window, const WalkRules& rules, u32 lane) {
    const u32 most = rules.lazy_steps;
    while (most != 0 && (window.is_nice >> lane & 1) == 0) {
        if (lane + most >= kWalkLanes) {
            return {Outcome::kMove, lane, 0, 0};
        }
        const u32 wanted = window.pending & ((1u << most) - 1) << (lane + 1);
        if (wanted != 0) {
            return {Outcome::kPending, lane, 0, wanted};
        }
        const u32 step = window.better_next >> lane & 1     ? 1
                         : window.better_second >> lane & 1 ? 2
                                                            : 0;
        if (step == 0) {
            break;
        }
        lane += step;
    }
    return {Outcome::kMatch, lane, 0, 0};
}

// Walks through the window, to the match that the parser takes. `num_misses` is the number of
// searches in a row without a match.
__device__ inline WalkStep walk_window(const Window& window, const WalkRules& rules,
                                       u32 num_misses) {
    for (u32 lane = 0; lane < kWalkLanes;) {
        const u32 next = first_of((window.have_match | window.pending) >> lane << lane);
        if (!rules.ends_literals && num_misses + next - lane < 1u << rules.misses_to_skip_log2) {
            // No position is skipped before the first with a match.
            num_misses += next - lane;
            lane = next;
            if (lane == kWalkLanes) {
                return {Outcome::kNoMatch, lane, num_misses, 0};
            }
        }
        if (window.pending >> lane & 1) {
            const u32 lanes = (2u << rules.lazy_steps) - 1;
            return {Outcome::kPending, lane, 0, lanes << lane};
        }
        if (window.have_match >> lane & 1) {
            return find_better(window, rules, lane);
        }
        lane += 1 + (++num_misses >> rules.misses_to_skip_log2);
        // Under the strict rule, sequences may be added now, which change the window.
        if (rules.ends_literals || lane >= kWalkLanes) {
            return {Outcome::kNoMatch, lane, num_misses, 0};
        }
    }
    return {};
}

// kWalkLanes lanes have the same values of all members, except for choice_ and is_pending_.
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

    // Cuts the block. Returns the number of sequences. All lanes of the warp must call it.
    __device__ u32 run();

  private:
    // The lane's number among those of the block.
    __device__ static u32 lane() { return lane_id() % kWalkLanes; }
    __device__ static u32 vote(bool holds) {
        const u32 votes = __ballot_sync(kAllLanes, holds) >> (lane_id() - lane());
        return kWalkLanes == kWarpSize ? votes : votes & ((1u << kWalkLanes % kWarpSize) - 1);
    }
    template <typename Value>
    __device__ static Value value_of(Value value, u32 lane_of_block) {
        return __shfl_sync(kAllLanes, value, lane_id() - lane() + lane_of_block % kWalkLanes);
    }

    __device__ bool is_done() const { return position_ >= num_linked_; }
    __device__ void look();
    __device__ Window window() const;
    __device__ WalkStep find_step();
    __device__ void take(const WalkStep& step, u32 length, u32 offset);
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
    u64* sequences_;
    u32 num_sequences_ = 0;
    u32 position_ = 0;         // of the first lane in the window
    u32 anchor_ = 0;           // start of the literals that belong to no sequence yet
    u32 num_misses_ = 0;       // number of searches in a row without a match
    u32 high_water_mark_ = 0;  // these two as in shared_
    u32 last_offset_ = 0;
    Choice choice_{};
    bool is_pending_ = false;
};

// Looks at the positions of the window. Only finds out which of them must choose.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::look() {
    const u32 position = position_ + lane();
    choice_ = Choice{};
    is_pending_ = false;
    if (position < num_linked_) {
        const Match found = unpack_match(matches_[position]);
        choice_ = {found, found.length == kShortLength ? 0 : found.gain};
        const bool is_legal = rules_.source_rule == SourceRule::kAny || found.length == 0 ||
                              position - found.offset + found.length <= high_water_mark_;
        is_pending_ = !is_legal || (kEntropyCoded && may_repeat(text_, position, last_offset_));
    }
}

template <typename Position, bool kEntropyCoded>
__device__ inline Window Walk<Position, kEntropyCoded>::window() const {
    const Match& match = choice_.match;
    Window window{vote(match.length != 0), vote(is_pending_),
                  vote(match.length >= rules_.search.nice_length), 0, 0};
    const int next = value_of(choice_.long_gain, lane() + 1);
    window.better_next = vote(next > match.gain + kLazyBias);
    if (rules_.lazy_steps == kMaxLazySteps) {
        const int second = value_of(choice_.long_gain, lane() + 2);
        window.better_second = vote(second > match.gain + 2 * kLazyBias);
    }
    return window;
}

// Walks through the window. Lanes that are pending choose, if the walk comes to them.
template <typename Position, bool kEntropyCoded>
__device__ inline WalkStep Walk<Position, kEntropyCoded>::find_step() {
    for (;;) {
        const WalkStep step = walk_window(window(), rules_, num_misses_);
        const bool chooses = !is_done() && is_pending_ && (step.wanted >> lane() & 1) != 0;
        if (!__any_sync(kAllLanes, chooses)) {
            return step;
        }
        if (chooses) {
            choice_ =
                choose_match<Position, kEntropyCoded>(shared_, position_ + lane(), choice_.match);
            is_pending_ = false;
        }
    }
}

// These change what the lanes read from shared memory when they choose.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::restart_group() {
    high_water_mark_ = anchor_;
    if (lane() == 0) {
        shared_.group.restart(anchor_);
    }
}

template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::set_last_offset(u32 offset) {
    last_offset_ = offset;
    if (lane() == 0) {
        shared_.last_offset = offset;
    }
}

// Adds a sequence that ends at anchor_.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::push(u32 literal_length, u32 match_length,
                                                           u32 match_offset) {
    if (lane() == 0) {
        sequences_[num_sequences_] = pack_sequence(literal_length, match_length, match_offset);
    }
    ++num_sequences_;
    if (match_length != 0) {
        set_last_offset(match_offset);
        if (lane() == 0) {
            shared_.group.add(anchor_ - match_length, anchor_);
        }
    }
    if (num_sequences_ % (1u << rules_.group_size_log2) == 0) {
        restart_group();
    }
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

// Does a step that is not pending.
template <typename Position, bool kEntropyCoded>
__device__ inline void Walk<Position, kEntropyCoded>::take(const WalkStep& step, u32 length,
                                                           u32 offset) {
    num_misses_ = step.num_misses;
    if (step.outcome == Outcome::kMatch) {
        emit(position_ + step.lane, length, offset);
        position_ = anchor_;
        return;
    }
    position_ = min(position_ + step.lane, size_);
    if (step.outcome == Outcome::kNoMatch) {
        end_long_literals();
    }
}

template <typename Position, bool kEntropyCoded>
__device__ inline u32 Walk<Position, kEntropyCoded>::run() {
    __syncwarp();
    while (__any_sync(kAllLanes, !is_done())) {
        look();
        const WalkStep step = find_step();
        const u32 length = value_of(choice_.match.length, step.lane);
        const u32 offset = value_of(choice_.match.offset, step.lane);
        if (!is_done()) {
            take(step, length, offset);
        }
        __syncwarp();
    }
    if (anchor_ < size_) {
        emit(size_, 0, 0);
    }
    return num_sequences_;
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
    const u32 block_of_cta = threadIdx.x / kWalkLanes;
    const u32 index = blockIdx.x * (kWalkThreads / kWalkLanes) + block_of_cta;
    const bool exists = static_cast<u64>(index) * batch.block_size < batch.content_size;
    WalkShared<Position>& shared = *reinterpret_cast<WalkShared<Position>*>(
        shared_memory + block_of_cta * (kWalkBytesPerBlock / sizeof(uint4)));
    const u64 first = index * items_per_block(batch.block_size);
    if (threadIdx.x % kWalkLanes == 0) {
        shared.block = exists ? block_of(index, batch.content, batch.content_size, batch.block_size)
                              : ParseBlock{batch.content, 0, 0};
        shared.input = {batch.input.links + first,
                        rules.search.finds_short ? batch.input.short_links + first : nullptr,
                        is_bit ? batch.input.sums + first : nullptr, batch.input.matches + first};
        shared.rules = rules;
    }
    __syncwarp();
    u64* const sequences = batch.sequences + static_cast<u64>(index) * batch.max_sequences;
    const u32 count = is_bit ? Walk<Position, true>(shared, rules, sequences).run()
                             : Walk<Position, false>(shared, rules, sequences).run();
    if (exists && threadIdx.x % kWalkLanes == 0) {
        batch.num_sequences[index] = count;
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kWalkThreads, gompfs::kWalkCtas)
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

extern "C" __global__ void __launch_bounds__(gompfs::kWalkThreads, gompfs::kWalkCtas)
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

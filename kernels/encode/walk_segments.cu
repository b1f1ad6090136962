// Cuts blocks into sequences without dependency elimination, as native/codec/parse/lazy_parser.cpp
// does, by walks from many positions at the same time.
//
// Between two sequences, all that the parser does later depends on its position and the last match
// offset. Two walks that come to the same position with the same last offset therefore go on in the
// same way, and nearly all walks through a text meet after some 30 bytes. So a block is cut into
// segments, one for each thread:
//
// 1. Each thread walks through its segment, as if the parser came to its start with no last offset.
// 2. It walks on until it meets the walk of a later segment.
// 3. The walk from the start of the block is right, and so is each walk that it meets, from there
//    on. The right parts of all walks are the sequences of the block.
//
// Matches are searched when a walk comes to a position: a fifth to a third of all positions. Each
// lane of a warp goes on with its own search. The lanes take their steps in turns, so that the
// lanes that are at the same point do it together: follow links, while many lanes have some to
// follow; compare the candidates that were found; decide what to take where a search has ended.
// Walks that never meet, as in content with a short period, go on to the end of the block; then the
// block takes the time of one walk through it.
//
// Launch: a CTA of kSegmentThreads threads per block.
// Mapping: thread i walks from position i * segment_size.
// Reads: the content of block i at content + i * block_size; links, short_links and sums at i *
//   items_per_block(block_size). short_links is not used unless finds_short, and sums not without
//   entropy coding (is_bit).
// Writes: the sequences of block i (shared/packed_sequence.h) at sequences + i * max_sequences, and
//   num_sequences[i]. `steps` is working memory: steps_per_segment items for each thread.
// Shared memory: kSegmentBytesPerCta, and kSegmentBytes for each thread. walk_segments_narrow: also
//   kTextPadding bytes, and the block.
// Requires: content is aligned to 16 bytes, and block_size is a multiple of 16 if there are several
//   blocks; 32 bytes after the content are readable. max_sequences is what most_sequences in
//   gompfs/gpu/encode/parser.py returns. steps_per_segment is at least one more than the most
//   sequences that begin in a segment.
// Fails: never.
// Oracle: native/codec/parse/lazy_parser.cpp (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/parser.py.
#include "encode/position_walk.cuh"
#include "shared/cta_scan.cuh"
#include "shared/packed_sequence.h"

namespace gompfs {

constexpr u32 kMaxSegmentThreads = 512;
// The number of CTAs that fit on a multiprocessor, each with its text.
constexpr u32 kSegmentCtas = 2;
constexpr u32 kNoStep = ~0u;
// Lanes stop following links when at most one in kStillFollowing of the walking lanes has links
// left.
constexpr u32 kStillFollowing = 4;
constexpr u32 kFollowSteps = 2;  // between two votes on that

struct Segment {
    union {
        u32 num_own_steps;  // of the walk through the segment
        u32 jump;           // mark_right_steps: a later walk on the path, or kNoStep
    };
    // The later walk that the walk from this segment meets: its segment, and the number of its
    // steps before they meet. next_segment is kNoStep if this walk goes on to the end of the block.
    u32 next_segment;
    u32 next_step;
    u32 first_step;  // the first right step of the walk, or kNoStep
};

struct SegmentShared {
    u32 scratch[kWarpSize];
    Segment segments[1];  // one for each thread
};

constexpr unsigned kSegmentBytes = sizeof(Segment);
constexpr unsigned kSegmentBytesPerCta = kWarpSize * sizeof(u32);

// A step of a walk: the match of a sequence, and where it ends. A length of 0 for the literals at
// the end of the block.
struct Step {
    u32 end;
    u32 length;
    u32 offset;
};

__device__ inline u64 pack_step(const Step& step) {
    return pack_match({step.length, step.offset, static_cast<int>(step.end)});
}

__device__ inline Step unpack_step(u64 packed) {
    const Match match = unpack_match(packed);
    return {static_cast<u32>(match.gain), match.length, match.offset};
}

// The stored steps of all walks of a block.
struct StepArrays {
    u64* steps;
    u32 steps_per_segment;
    u32 segment_size;

    __device__ u64& at(u32 segment, u32 step) const {
        return steps[static_cast<u64>(segment) * steps_per_segment + step];
    }
};

// Makes the sequences of right steps: only counts them if `sequences` is null.
struct SequenceWriter {
    u64* sequences;
    u32 max_literal_length;
    u32 anchor;
    u32 num_sequences;

    // A literal string too long for one sequence takes several.
    __device__ void put(const Step& step) {
        u32 literal_length = step.end - step.length - anchor;
        for (; literal_length > max_literal_length; literal_length -= max_literal_length) {
            push(max_literal_length, 0, 0);
        }
        push(literal_length, step.length, step.offset);
        anchor = step.end;
    }

    __device__ void push(u32 literal_length, u32 match_length, u32 match_offset) {
        if (sequences != nullptr) {
            sequences[num_sequences] = pack_sequence(literal_length, match_length, match_offset);
        }
        ++num_sequences;
    }
};

// The phases of a thread: two walks, then two passes over the right steps, which count and write
// them. Walks are in one loop, so that the search is compiled once.
enum class Phase { kOwnSegment, kUntilMeeting, kCount, kWrite, kEnd };

template <typename Position, bool kEntropyCoded>
class SegmentWalk {
  public:
    __device__ SegmentWalk(const BestMatches<Position, kEntropyCoded>& matches,
                           const ParseBlock& block, const WalkRules& rules, const StepArrays& steps,
                           SegmentShared& shared)
        : matches_(matches),
          walk_(matches, block, rules),
          steps_(steps),
          shared_(shared),
          size_(block.size),
          begin_(min(threadIdx.x * steps.segment_size, block.size)),
          end_(min(begin_ + steps.segment_size, block.num_linked)),
          writer_{nullptr, rules.max_literal_length, 0, 0} {}

    // Writes the sequences of the block. Returns their number in the last thread.
    __device__ u32 run(u64* sequences) {
        walk_.start({begin_, 0});
#pragma unroll 1
        for (Phase phase = Phase::kOwnSegment; phase != Phase::kEnd;
             phase = static_cast<Phase>(static_cast<int>(phase) + 1)) {
            if (phase == Phase::kCount) {
                mark_right_steps();
            } else if (phase == Phase::kWrite) {
                const u32 before = sum_before(writer_.num_sequences, shared_.scratch);
                writer_.sequences = sequences;
                writer_.num_sequences = before;
            }
            if (phase >= Phase::kCount) {
                put_stored_steps();
            }
            walk(phase);
            end_walk(phase);
            __syncthreads();
        }
        return writer_.num_sequences;
    }

  private:
    // Walks until all lanes of the warp are done.
    __device__ void walk(Phase phase) {
        begin_search(phase);
        for (;;) {
            const u32 num_walking = lanes_that(search_.state != SearchState::kDone);
            if (num_walking == 0) {
                return;
            }
            do {
#pragma unroll
                for (u32 step = 0; step < kFollowSteps; ++step) {
                    if (search_.state == SearchState::kFollowing) {
                        matches_.follow(search_);
                    }
                }
            } while (lanes_that(search_.state == SearchState::kFollowing) * kStillFollowing >
                     num_walking);
            if (search_.state == SearchState::kHit) {
                matches_.compare(search_);
            }
            if (search_.state == SearchState::kEnded) {
                take_step(phase);
                begin_search(phase);
            }
        }
    }

    // The number of lanes of which something is true.
    __device__ static u32 lanes_that(bool is_true) {
        return static_cast<u32>(__popc(__ballot_sync(kAllLanes, is_true)));
    }

    __device__ void begin_search(Phase phase) {
        if (is_done(phase)) {
            search_.state = SearchState::kDone;
        } else {
            search_ = walk_.search();
        }
    }

    __device__ bool is_done(Phase phase) {
        if (phase == Phase::kOwnSegment) {
            return walk_.has_passed(end_);
        }
        if (phase == Phase::kUntilMeeting) {
            return walk_.is_at_end() || (walk_.is_between_steps() && has_met());
        }
        return !walks_again_ || walk_.is_at_end() ||
               (walk_.is_between_steps() && walk_.state() == stop_);
    }

    __device__ void end_walk(Phase phase) {
        if (phase >= Phase::kCount) {
            put_last_literals();
            return;
        }
        stop_ = walk_.state();
        if (phase == Phase::kOwnSegment) {
            shared_.segments[threadIdx.x].num_own_steps = num_steps_;
        }
    }

    __device__ void take_step(Phase phase) {
        const WalkState before = walk_.state();
        Match match;
        if (walk_.decide(search_, match)) {
            const Step step{walk_.state().anchor, match.length, match.offset};
            if (phase >= Phase::kCount) {
                writer_.put(step);
            } else {
                store(step, before);
            }
        }
    }

    __device__ void store(const Step& step, const WalkState& before) {
        if (num_steps_ < steps_.steps_per_segment) {
            steps_.at(threadIdx.x, num_steps_) = pack_step(step);
        } else if (num_steps_ == steps_.steps_per_segment) {
            full_ = before;
        }
        ++num_steps_;
    }

    // Returns whether this walk has met the walk that began in the segment where it is now: whether
    // that walk was in the same state at this position.
    __device__ bool has_met() {
        const WalkState state = walk_.state();
        const u32 segment = state.anchor / steps_.segment_size;
        if (segment != next_segment_) {
            next_segment_ = segment;
            next_step_ = 0;
        }
        if (state == WalkState{segment * steps_.segment_size, 0}) {
            return true;
        }
        const u32 num_steps = shared_.segments[segment].num_own_steps;
        while (next_step_ < num_steps) {
            const Step step = unpack_step(steps_.at(segment, next_step_));
            if (step.end > state.anchor) {
                return false;
            }
            ++next_step_;
            if (state == WalkState{step.end, kEntropyCoded ? step.offset : 0}) {
                return true;
            }
        }
        return false;
    }

    // Finds the walks that the walk from the start of the block meets. Each round doubles the
    // number of walks that are known.
    __device__ void mark_right_steps() {
        Segment& own = shared_.segments[threadIdx.x];
        const u32 next = walk_.is_at_end() ? kNoStep : next_segment_;
        bool is_right = threadIdx.x == 0;
        u32 jump = next;
        own = {{jump}, next, next_step_, is_right ? 0 : kNoStep};
        __syncthreads();
        for (u32 reach = 1; reach < blockDim.x; reach *= 2) {
            const u32 jump_from_there = jump == kNoStep ? kNoStep : shared_.segments[jump].jump;
            is_right = own.first_step != kNoStep;
            __syncthreads();
            if (is_right && jump != kNoStep) {
                shared_.segments[jump].first_step = 0;
            }
            own.jump = jump = jump_from_there;
            __syncthreads();
        }
        is_right = own.first_step != kNoStep;
        __syncthreads();
        if (is_right && next != kNoStep) {
            shared_.segments[next].first_step = next_step_;
        }
        __syncthreads();
    }

    // Puts the right steps. Gets ready to walk again if there was no space to store more.
    __device__ void put_stored_steps() {
        const u32 first = shared_.segments[threadIdx.x].first_step;
        is_right_ = first != kNoStep;
        walks_again_ = is_right_ && num_steps_ > steps_.steps_per_segment;
        if (!is_right_) {
            return;
        }
        writer_.anchor = first == 0 ? begin_ : unpack_step(steps_.at(threadIdx.x, first - 1)).end;
        const u32 num_stored = min(num_steps_, steps_.steps_per_segment);
        for (u32 step = first; step < num_stored; ++step) {
            writer_.put(unpack_step(steps_.at(threadIdx.x, step)));
        }
        if (walks_again_) {
            walk_.start(full_);
        }
    }

    __device__ void put_last_literals() {
        if (is_right_ && shared_.segments[threadIdx.x].next_segment == kNoStep &&
            writer_.anchor < size_) {
            writer_.put({size_, 0, 0});
        }
    }

    BestMatches<Position, kEntropyCoded> matches_;
    PositionWalk<Position, kEntropyCoded> walk_;
    PositionSearch search_{};
    StepArrays steps_;
    SegmentShared& shared_;
    u32 size_;
    u32 begin_, end_;
    SequenceWriter writer_;
    WalkState stop_{};  // where the walk ended
    WalkState full_{};  // before the first step that was not stored
    u32 num_steps_ = 0;
    u32 next_segment_ = 0;  // the walk of this segment was compared with this one
    u32 next_step_ = 0;     // up to this step
    bool is_right_ = false;
    bool walks_again_ = false;
};

// The arguments of the kernels; the pointers are those of the batch.
template <typename Position>
struct SegmentBatch {
    const Position* links;
    const Position* short_links;
    const u16* sums;
    u64* sequences;
    u32* num_sequences;
    u32 max_sequences;
};

template <typename Position, bool kEntropyCoded>
__device__ inline void walk_block(const SegmentBatch<Position>& batch, const ParseBlock& block,
                                  const Text& text, u64 first, const WalkRules& rules,
                                  const StepArrays& steps, SegmentShared& shared) {
    const BestMatches<Position, kEntropyCoded> matches(
        block, text, batch.links + first,
        rules.search.finds_short ? batch.short_links + first : nullptr,
        kEntropyCoded ? batch.sums + first : nullptr, rules.search);
    SegmentWalk<Position, kEntropyCoded> walk(matches, block, rules, steps, shared);
    const u32 count =
        walk.run(batch.sequences + static_cast<u64>(blockIdx.x) * batch.max_sequences);
    if (threadIdx.x == blockDim.x - 1) {
        batch.num_sequences[blockIdx.x] = count;
    }
}

template <typename Position>
__device__ inline void walk_block_of(bool is_bit, const SegmentBatch<Position>& batch,
                                     const ParseBlock& block, const Text& text, u32 block_size,
                                     const u32* settings, u64* steps, u32 steps_per_segment,
                                     SegmentShared& shared) {
    const u64 first = blockIdx.x * items_per_block(block_size);
    const WalkRules rules = walk_rules(*reinterpret_cast<const WalkSettings*>(settings));
    const u64 num_segments = static_cast<u64>(blockIdx.x) * blockDim.x;
    const StepArrays arrays{steps + num_segments * steps_per_segment, steps_per_segment,
                            (block_size + blockDim.x - 1) / blockDim.x};
    if (is_bit) {
        walk_block<Position, true>(batch, block, text, first, rules, arrays, shared);
    } else {
        walk_block<Position, false>(batch, block, text, first, rules, arrays, shared);
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kMaxSegmentThreads, gompfs::kSegmentCtas)
    walk_segments_narrow(const unsigned char* content, unsigned long long content_size,
                         unsigned int block_size, const unsigned short* links,
                         const unsigned short* short_links, const unsigned short* sums,
                         const unsigned int* settings, unsigned int is_bit,
                         unsigned long long* sequences, unsigned int* num_sequences,
                         unsigned long long* steps, unsigned int max_sequences,
                         unsigned int steps_per_segment) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    uint4* const text = shared_memory + (kSegmentBytesPerCta + kSegmentBytes * blockDim.x) / 16;
    copy_to_shared(block.content, block.size, text);
    __syncthreads();
    walk_block_of(
        is_bit != 0,
        SegmentBatch<u16>{links, short_links, sums, sequences, num_sequences, max_sequences}, block,
        Text(reinterpret_cast<const u8*>(text)), block_size, settings, steps, steps_per_segment,
        *reinterpret_cast<SegmentShared*>(shared_memory));
}

extern "C" __global__ void __launch_bounds__(gompfs::kMaxSegmentThreads, gompfs::kSegmentCtas)
    walk_segments_wide(const unsigned char* content, unsigned long long content_size,
                       unsigned int block_size, const unsigned int* links,
                       const unsigned int* short_links, const unsigned short* sums,
                       const unsigned int* settings, unsigned int is_bit,
                       unsigned long long* sequences, unsigned int* num_sequences,
                       unsigned long long* steps, unsigned int max_sequences,
                       unsigned int steps_per_segment) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const ParseBlock block = block_of(blockIdx.x, content, content_size, block_size);
    walk_block_of(
        is_bit != 0,
        SegmentBatch<u32>{links, short_links, sums, sequences, num_sequences, max_sequences}, block,
        Text(block.content), block_size, settings, steps, steps_per_segment,
        *reinterpret_cast<SegmentShared*>(shared_memory));
}

// Finds the cheapest ways from all positions of a block to its end.
// native/codec/parse/bit_backward_parser.cpp explains ways and finds the same.
//
// The lanes of a warp search the segments of a block at the same time, each from its end to its
// begin. A ring in shared memory has the costs of the next kRing positions of each lane; those of
// later positions are read from device memory.
//
// Launch: a warp per block, kWayWarps blocks per CTA.
// Mapping: lane i searches segment i.
// Reads: the content of block i at content + i * block_size; candidates at i *
//   items_per_block(block_size) (find_candidates.cu); the costs of symbols at i * kNumSymbols
//   (estimate_way_costs.cu); except in the first pass, the costs and repeats of the pass before.
// Writes: costs and repeats at i * ways_per_block(block_size), see WayIndex; choices[i *
//   items_per_block(block_size) + p] for each position p: 8 times 16 bits, see taken_bit.
// Shared memory: a WaySearchShared for each warp.
// Requires: the arrays of the pass before are not those that are written.
// Fails: never.
// Oracle: native/codec/parse/bit_backward_parser.cpp (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/backward_parser.py.
#include "encode/length_row.cuh"
#include "encode/way_arrays.cuh"

namespace gompfs {

constexpr u32 kWayWarps = 4;
constexpr u32 kRing = 32;
static_assert(kRing > kEachLength);

// The shared memory of a warp. The rings have a column for each lane.
struct WaySearchShared {
    // The costs of tokens, shifted left like the costs in items (pack_item).
    alignas(16) int token[kNumMatchClasses][kNumLiteralClasses];
    int cost[kRing][kWarpSize];
    u32 repeat[kRing][kWarpSize];  // the lower half
    u32 gain[kRing][kWarpSize];    // the upper half
    u16 literal[kNumLiteralSymbols];
    u16 offset[kNumOffsetSymbols];
};
constexpr unsigned kWaySearchBytes = (sizeof(WaySearchShared) + 15) / 16 * 16;

__device__ inline void load_costs(const u16* costs, WaySearchShared& shared) {
    for (u32 symbol = lane_id(); symbol < kNumLiteralSymbols; symbol += kWarpSize) {
        shared.literal[symbol] = costs[symbol];
    }
    for (u32 symbol = lane_id(); symbol < kNumTokenSymbols; symbol += kWarpSize) {
        shared.token[symbol % kNumMatchClasses][symbol / kNumMatchClasses] =
            costs[kNumLiteralSymbols + symbol] << kItemShift;
    }
    for (u32 symbol = lane_id(); symbol < kNumOffsetSymbols; symbol += kWarpSize) {
        shared.offset[symbol] = costs[kNumLiteralSymbols + kNumTokenSymbols + symbol];
    }
    __syncwarp();
}

// The cheapest match at a position, by the class of the literals before it.
struct Items {
    int by_class[kNumLiteralClasses];
};

// One lane's search.
class SegmentSearch {
  public:
    // `before` has null pointers in the first pass.
    __device__ SegmentSearch(const ParseBlock& block, WaySearchShared& shared,
                             const WayArrays& before, const WayArrays& ways)
        : block_(block),
          shared_(shared),
          before_(before),
          ways_(ways),
          index_{segment_size(block.size)},
          begin_(min(lane_id() * index_.segment_size, block.size)),
          end_(min(begin_ + index_.segment_size, block.size)) {}

    __device__ void run(const uint4* candidates, uint4* choices);

  private:
    __device__ int cost_at(u32 position) const;
    __device__ u64 repeat_at(u32 position) const;
    __device__ void set_repeat(u32 position, u64 repeat);
    __device__ int offset_cost(u32 offset) const { return shared_.offset[offset_symbol(offset)]; }
    __device__ int token_cost(u32 literals, u32 length) const {
        return shared_.token[match_class_of(length)][literals] >> kItemShift;
    }
    __device__ void start_states();
    __device__ uint4 choose(const Items& items);
    __device__ int gain_of_repeat(u32 end, const WayMatch& match);
    __device__ void offer(u32 candidate, u32 length, int cost, Items& items) const;
    __device__ void offer_longest(u32 candidate, const WayMatch& match, u32 shorter, int cost,
                                  int gain, Items& items) const;
    __device__ Items offer_candidates(const uint4& words);

    ParseBlock block_;
    WaySearchShared& shared_;
    WayArrays before_;
    WayArrays ways_;
    WayIndex index_;
    u32 begin_;
    u32 end_;
    u32 position_ = 0;
    // The costs of the way from the next position, by the number of literals before that position.
    int states_[kNumLiteralStates + 1] = {};
};

// Returns the cost of the way from a later position.
__device__ inline int SegmentSearch::cost_at(u32 position) const {
    if (position >= end_) {
        return position == block_.size ? 0
               : before_.costs == nullptr
                   ? static_cast<int>(block_.size - position) * kFirstByteCost
                   : before_.costs[index_(position)];
    }
    return position - position_ < kRing
               ? shared_.cost[position % kRing][lane_id()]
               : ways_.costs[(position - begin_) * kNumSegments + lane_id()];
}

__device__ inline u64 SegmentSearch::repeat_at(u32 position) const {
    if (position >= end_) {
        return position == block_.size || before_.repeats == nullptr
                   ? 0
                   : before_.repeats[index_(position)];
    }
    const u32 slot = position % kRing;
    return position - position_ < kRing
               ? shared_.repeat[slot][lane_id()] | static_cast<u64>(shared_.gain[slot][lane_id()])
                                                       << 32
               : ways_.repeats[(position - begin_) * kNumSegments + lane_id()];
}

__device__ inline void SegmentSearch::set_repeat(u32 position, u64 repeat) {
    if (position - position_ < kRing) {
        shared_.repeat[position % kRing][lane_id()] = static_cast<u32>(repeat);
        shared_.gain[position % kRing][lane_id()] = static_cast<u32>(repeat >> 32);
    }
    ways_.repeats[(position - begin_) * kNumSegments + lane_id()] = repeat;
}

// Returns the gain if the match that ends at `end` is repeated.
__device__ inline int SegmentSearch::gain_of_repeat(u32 end, const WayMatch& match) {
    const u64 known = repeat_at(end);
    if (repeat_offset(known) == match.offset || end >= end_ || match.repeat_literals == 0) {
        return repeat_gain(known, match.offset);
    }
    int cost = shared_.offset[kOffsetSymbolRepeat] +
               token_cost(match.repeat_literals, match.repeat_length);
    for (u32 literal = 0; literal < match.repeat_literals; ++literal) {
        cost += shared_.literal[block_.content[end + literal]];
    }
    const u32 after = end + match.repeat_literals + match.repeat_length;
    cost += cost_at(after) - repeat_gain(repeat_at(after), match.offset);
    const int gain = cost_at(end) - cost;
    if (gain <= 0) {
        return 0;
    }
    set_repeat(end, pack_repeat(match, gain));
    return gain;
}

// Offers one length of a match. `cost` is the cost of the match's offset.
__device__ inline void SegmentSearch::offer(u32 candidate, u32 length, int cost,
                                            Items& items) const {
    const int item = pack_item(cost + cost_at(position_ + length) - states_[0], candidate, length);
    const uint4* const row = reinterpret_cast<const uint4*>(shared_.token[match_class_of(length)]);
    const uint4 low = row[0], high = row[1];
    const u32 token[kNumLiteralClasses] = {low.x,  low.y,  low.z,  low.w,
                                           high.x, high.y, high.z, high.w};
#pragma unroll
    for (u32 each = 0; each < kNumLiteralClasses; ++each) {
        items.by_class[each] = min(items.by_class[each], item + static_cast<int>(token[each]));
    }
}

// Offers the greatest lengths of a candidate above kEachLength.
__device__ inline void SegmentSearch::offer_longest(u32 candidate, const WayMatch& match,
                                                    u32 shorter, int cost, int gain,
                                                    Items& items) const {
    const u32 least = max(shorter, kEachLength);
    for (u32 back = 0; back < kNumLongest && match.length > least + back; ++back) {
        offer(candidate, match.length - back, back == 0 ? cost - gain : cost, items);
    }
}

__device__ inline Items SegmentSearch::offer_candidates(const uint4& words) {
    Items items;
#pragma unroll
    for (int& item : items.by_class) {
        item = kNoItem;
    }
    const WayMatch nearest = unpack_way_match(words.x, words.w & kWayLengthMask);
    const WayMatch best = unpack_way_match(words.y, words.w >> 16);
    const int nearest_cost = nearest.length != 0 ? offset_cost(nearest.offset) : 0;
    const int best_cost = best.length != 0 ? offset_cost(best.offset) : 0;
    const int nearest_gain =
        nearest.length != 0 ? gain_of_repeat(position_ + nearest.length, nearest) : 0;
    const int best_gain =
        best.length > nearest.length ? gain_of_repeat(position_ + best.length, best) : 0;
    u32 shorter = kShortLength - 1;
    if (words.z != 0) {
        offer(kShortMatch, kShortLength, offset_cost(words.z), items);
        shorter = kShortLength;
    }
    const u32 longest = max(nearest.length, best.length);
    for (u32 length = shorter + 1; length <= min(longest, kEachLength); ++length) {
        const bool is_nearest = length <= nearest.length;
        const WayMatch& match = is_nearest ? nearest : best;
        const int gain = is_nearest ? nearest_gain : best_gain;
        offer(is_nearest ? kNearestMatch : kBestMatch, length,
              (is_nearest ? nearest_cost : best_cost) - (length == match.length ? gain : 0), items);
    }
    offer_longest(kNearestMatch, nearest, shorter, nearest_cost, nearest_gain, items);
    offer_longest(kBestMatch, best, max(shorter, nearest.length), best_cost, best_gain, items);
    return items;
}

// The states at the end of the segment. Literals at the end of the block need a sequence, too.
__device__ inline void SegmentSearch::start_states() {
    const bool is_last = end_ == block_.size;
#pragma unroll
    for (int state = 0; state <= kNumLiteralStates; ++state) {
        states_[state] =
            is_last && state != 0
                ? shared_.token[0][literal_class_of(min(state, kLastLiteralState))] >> kItemShift
                : cost_at(end_);
    }
}

// Chooses what to do at this position, after each number of literals. Returns the choices.
__device__ inline uint4 SegmentSearch::choose(const Items& items) {
    const int literal = shared_.literal[block_.content[position_]];
    const int after = states_[0];
    u32 choices[kNumLiteralClasses];
#pragma unroll
    for (u32 each = 0; each < kNumLiteralClasses; ++each) {
        choices[each] = static_cast<u32>(items.by_class[each]) & kItemMask;
    }
#pragma unroll
    for (int state = 0; state < kNumLiteralStates; ++state) {
        const int literal_class = literal_class_of(state);
        const int with_match = after + cost_of_item(items.by_class[literal_class]);
        const int with_literal = states_[state + 1] + literal;
        choices[literal_class] |= with_match < with_literal ? taken_bit(state) : 0;
        states_[state] = min(with_match, with_literal);
    }
    states_[kNumLiteralStates] = states_[kLastLiteralState];
    return {choices[0] | choices[1] << 16, choices[2] | choices[3] << 16,
            choices[4] | choices[5] << 16, choices[6] | choices[7] << 16};
}

__device__ inline void SegmentSearch::run(const uint4* candidates, uint4* choices) {
    if (begin_ == end_) {
        return;
    }
    position_ = end_;
    start_states();
    uint4 next = candidates[end_ - 1];
    while (position_ > begin_) {
        --position_;
        const uint4 words = next;
        next = candidates[max(position_, 1u) - 1];
        choices[position_] = choose(offer_candidates(words));
        const u32 slot = position_ % kRing;
        shared_.cost[slot][lane_id()] = states_[0];
        ways_.costs[(position_ - begin_) * kNumSegments + lane_id()] = states_[0];
        set_repeat(position_, 0);
    }
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kWayWarps* gompfs::kWarpSize)
    find_ways(const unsigned char* content, unsigned long long content_size,
              unsigned int block_size, const uint4* candidates, const unsigned short* symbol_costs,
              int* costs_before, unsigned long long* repeats_before, int* costs,
              unsigned long long* repeats, unsigned int is_first, uint4* choices) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const u32 warp = threadIdx.x / kWarpSize;
    const u32 index = blockIdx.x * kWayWarps + warp;
    if (static_cast<u64>(index) * block_size >= content_size) {
        return;
    }
    WaySearchShared& shared = *reinterpret_cast<WaySearchShared*>(
        shared_memory + warp * (kWaySearchBytes / sizeof(uint4)));
    load_costs(symbol_costs + index * kNumSymbols, shared);
    const u64 first = index * items_per_block(block_size);
    const WayArrays before =
        is_first != 0 ? WayArrays{nullptr, nullptr}
                      : WayArrays{costs_before, repeats_before}.of_block(index, block_size);
    SegmentSearch search(block_of(index, content, content_size, block_size), shared, before,
                         WayArrays{costs, repeats}.of_block(index, block_size));
    search.run(candidates + first, choices + first);
}

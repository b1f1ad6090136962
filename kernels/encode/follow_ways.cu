// Makes the sequences of the cheapest way through each block, which find_ways.cu has found.
//
// Launch: a warp per block, kFollowWarps blocks per CTA.
// Mapping: lane i looks at the i-th position after the one that is reached. The first lane that
//   takes a match is the next step.
// Reads: choices and candidates at i * items_per_block(block_size) for block i, repeats at i *
//   ways_per_block(block_size).
// Writes: num_sequences[i], and the sequences of block i at i * max_sequences, as
//   shared/packed_sequence.h packs them.
// Shared memory: none.
// Requires: max_sequences is at least what most_sequences of gompfs/gpu/encode/parser.py returns.
// Fails: never.
// Oracle: native/codec/parse/bit_backward_parser.cpp (tests/kernels/parse_cases.py).
// Caller: gompfs/gpu/encode/backward_parser.py.
#include "encode/way_arrays.cuh"
#include "shared/packed_sequence.h"

namespace gompfs {

constexpr u32 kFollowWarps = 4;

// The arrays of a block.
struct WayToFollow {
    u32 size;
    const u16* choices;
    const uint4* candidates;
    const u64* repeats;

    __device__ u32 offset_of(u32 position, u32 candidate) const {
        const u32* const words = reinterpret_cast<const u32*>(candidates + position);
        return words[candidate] & kWayOffsetMask;
    }
    __device__ u64 repeat_at(u32 position) const {
        return position < size ? repeats[WayIndex{segment_size(size)}(position)] : 0;
    }
};

// Follows the way through one block, with all lanes of a warp.
class Follow {
  public:
    __device__ Follow(const WayToFollow& way, u64* sequences) : way_(way), sequences_(sequences) {}

    // Returns the number of sequences.
    __device__ u32 run();

  private:
    __device__ void push(u32 literal_length, u32 match_length, u32 match_offset);
    __device__ void take(u32 choice);

    WayToFollow way_;
    u64* sequences_;
    u32 num_sequences_ = 0;
    u32 position_ = 0;
    u32 anchor_ = 0;  // start of the literals that belong to no sequence yet
};

// Adds a sequence that begins at anchor_.
__device__ inline void Follow::push(u32 literal_length, u32 match_length, u32 match_offset) {
    if (lane_id() == 0) {
        sequences_[num_sequences_] = pack_sequence(literal_length, match_length, match_offset);
    }
    ++num_sequences_;
    anchor_ += literal_length + match_length;
}

// Takes the match at position_, and its repeats.
__device__ inline void Follow::take(u32 choice) {
    const u32 length = choice_length(choice);
    const u32 offset = way_.offset_of(position_, choice_candidate(choice));
    u64 repeat = way_.repeat_at(position_ + length);
    push(position_ - anchor_, length, offset);
    while (repeat_offset(repeat) == offset && num_sequences_ % kNumSubBlocks != 0) {
        push(repeat_literals(repeat), repeat_length(repeat), offset);
        repeat = way_.repeat_at(anchor_);
    }
    position_ = anchor_;
}

__device__ inline u32 Follow::run() {
    while (position_ < way_.size) {
        const u32 position = position_ + lane_id();
        const u32 num_literals = position - anchor_;
        const bool is_full = num_literals == kBitMaxLiteralLength;
        u32 choice = 0;
        bool is_taken = false;
        if (position < way_.size && !is_full) {
            const int state = static_cast<int>(min(num_literals, u32{kLastLiteralState}));
            choice = way_.choices[position * kNumLiteralClasses + literal_class_of(state)];
            is_taken = (choice & taken_bit(state)) != 0;
        }
        const u32 stops = __ballot_sync(kAllLanes, is_taken || (is_full && position < way_.size));
        if (stops == 0) {
            position_ += kWarpSize;
            continue;
        }
        const int first = __ffs(static_cast<int>(stops)) - 1;
        position_ += first;
        if (__shfl_sync(kAllLanes, is_full, first)) {
            push(kBitMaxLiteralLength, 0, 0);
        } else {
            take(__shfl_sync(kAllLanes, choice, first));
        }
    }
    if (anchor_ < way_.size) {
        push(way_.size - anchor_, 0, 0);
    }
    return num_sequences_;
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kFollowWarps* gompfs::kWarpSize)
    follow_ways(unsigned long long content_size, unsigned int block_size,
                const unsigned short* choices, const uint4* candidates,
                const unsigned long long* repeats, unsigned long long* sequences,
                unsigned int* num_sequences, unsigned int max_sequences) {
    using namespace gompfs;
    const u32 index = blockIdx.x * kFollowWarps + threadIdx.x / kWarpSize;
    if (static_cast<u64>(index) * block_size >= content_size) {
        return;
    }
    const u64 first = index * items_per_block(block_size);
    const WayToFollow way{block_of(index, nullptr, content_size, block_size).size,
                          choices + first * kNumLiteralClasses, candidates + first,
                          repeats + index * ways_per_block(block_size)};
    const u32 count = Follow(way, sequences + static_cast<u64>(index) * max_sequences).run();
    if (lane_id() == 0) {
        num_sequences[index] = count;
    }
}

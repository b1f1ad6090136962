// Bit streams written by many lanes at once.
//
// Each lane writes a contiguous range of bits. Two ranges may share the word in which one ends and
// the next begins. So the first and the last word of a range are cleared first (clear_edges), and
// the lanes combine their bits with them; the words between are stored.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

class LaneBits {
  public:
    // Begins at a position in bits from `words`.
    __device__ LaneBits(u32* words, u32 position)
        : word_(words + position / 32), num_pending_(position % 32) {}

    // Appends the lowest `count` bits, at most 32; the other bits must be 0.
    __device__ void put(u32 bits, u32 count) {
        pending_ |= static_cast<u64>(bits) << num_pending_;
        num_pending_ += count;
        if (num_pending_ >= 32) {
            if (is_first_) {
                atomicOr(word_, static_cast<u32>(pending_));
            } else {
                *word_ = static_cast<u32>(pending_);
            }
            ++word_;
            is_first_ = false;
            pending_ >>= 32;
            num_pending_ -= 32;
        }
    }

    // Writes the bits that do not fill a word.
    __device__ void finish() {
        if (num_pending_ != 0) {
            atomicOr(word_, static_cast<u32>(pending_));
        }
    }

  private:
    u32* word_;
    u64 pending_ = 0;
    u32 num_pending_;
    bool is_first_ = true;
};

// Clears the words in which a range of bits begins and ends.
__device__ inline void clear_edges(u32* words, u32 begin, u32 end) {
    words[begin / 32] = 0;
    words[end / 32] = 0;
}

}  // namespace gompfs

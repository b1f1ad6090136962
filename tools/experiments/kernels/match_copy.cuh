// How one lane copies a match: up to eight bytes a step, as the kernels of the Gompresso paper copy
// several, or one byte a step.
#pragma once

#include "shared/warp.cuh"

namespace gompfs {

// The position of one lane's match in the output, its length and its offset.
struct LaneMatch {
    u32 position;
    u32 length;
    u32 offset;
};

// The end of a match's source: a match may overlap its source.
__device__ inline u32 source_end(const LaneMatch& match) {
    return match.position - match.offset + min(match.length, match.offset);
}

struct ByteCopy {
    __device__ static void copy(u8* bytes, const LaneMatch& match) {
        for (u32 done = 0; done < match.length; ++done) {
            bytes[match.position + done] = bytes[match.position + done - match.offset];
        }
    }
};

constexpr u32 kCopyBytes = sizeof(u64);

// The eight bytes from an address on, by two aligned loads. Bytes after those that are final may
// change meanwhile; the caller does not use them.
__device__ inline u64 load_unaligned(const u8* bytes) {
    const u32 skipped = static_cast<u32>(reinterpret_cast<u64>(bytes) % kCopyBytes);
    const u64* const words = reinterpret_cast<const u64*>(bytes - skipped);
    return words[0] >> 8 * skipped | words[1] << 1 << (63 - 8 * skipped);
}

// Stores the lowest bytes of a value, and steps over them.
template <class Part>
__device__ inline void store_part(u8*& target, u64& value, u32& count) {
    *reinterpret_cast<Part*>(target) = static_cast<Part>(value);
    target += sizeof(Part);
    value >>= 8 * sizeof(Part);
    count -= sizeof(Part);
}

// Stores the lowest bytes of a value, all in one aligned word, by the largest aligned stores. The
// other bytes of the word belong to other lanes, so they must not be written.
__device__ inline void store_in_word(u8* target, u64 value, u32 count) {
    if (count == kCopyBytes) {
        *reinterpret_cast<u64*>(target) = value;
        return;
    }
    const auto has_bit = [&](u32 bit) { return (reinterpret_cast<u64>(target) & bit) != 0; };
    if (has_bit(1) && count >= 1) {
        store_part<u8>(target, value, count);
    }
    if (has_bit(2) && count >= 2) {
        store_part<u16>(target, value, count);
    }
    // Either the target is a multiple of four now, or less than two bytes are left.
    if (count >= 4) {
        store_part<u32>(target, value, count);
    }
    if (count >= 2) {
        store_part<u16>(target, value, count);
    }
    if (count >= 1) {
        store_part<u8>(target, value, count);
    }
}

// Copies up to eight bytes a step: one load, and few stores. Steps end at multiples of eight. A
// match that overlaps its source repeats its first `offset` bytes. So it can copy from any multiple
// of `offset` bytes before the target, once those bytes are written.
struct WordCopy {
    __device__ static void copy(u8* bytes, const LaneMatch& match) {
        u8* target = bytes + match.position;
        u32 offset = match.offset;
        for (u32 done = 0; done < match.length;) {
            const u32 to_end_of_word =
                kCopyBytes - static_cast<u32>(reinterpret_cast<u64>(target) % kCopyBytes);
            const u32 count = min(min(match.length - done, to_end_of_word), offset);
            store_in_word(target, load_unaligned(target - offset), count);
            target += count;
            done += count;
            offset *= offset < kCopyBytes && done + match.offset >= 2 * offset ? 2 : 1;
        }
    }
};

}  // namespace gompfs

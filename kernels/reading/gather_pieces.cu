// Copies pieces of decoded blocks to their offsets in an output.
//
// A piece begins at any byte of its block and of the output. Threads store 16 bytes at a multiple
// of 16 in the output; they load these bytes as words of 4, and shift them together if the piece
// does not begin at the same remainder of 4 in both. Pieces of damaged blocks become zeros, so that
// an output never has bytes of another file.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a CTA takes every piece whose number is its own modulo the number of CTAs; a thread
//   copies every 16 bytes whose number is its own modulo the size of the CTA.
// Reads: piece i, sizes[i] bytes from begins[i] on of block blocks[i], which is at the address
//   sources[blocks[i]] and sound if statuses[blocks[i]] is 0.
// Writes: sizes[i] bytes at output + targets[i].
// Shared memory: none.
// Requires: pieces that lie in their blocks. Blocks at multiples of 4, readable to the next
//   multiple of 4 after their end.
// Fails: never.
// Oracle: native/blocks/decode_ranges.cpp (tests/kernels/test_reading_kernels_on_host.py).
// Caller: gompfs/gpu/decode/plan_decoder.py.
#include "shared/warp.cuh"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

namespace gompfs {

constexpr u32 kGroup = 16;  // bytes that one thread stores at once

// The 16 bytes at an address.
__device__ inline uint4 load_group(const u8* from) {
    if (reinterpret_cast<u64>(from) % kGroup == 0) {
        return *reinterpret_cast<const uint4*>(from);
    }
    const u32 past = reinterpret_cast<u64>(from) % sizeof(u32);
    const u32* words = reinterpret_cast<const u32*>(from - past);
    uint4 group = {words[0], words[1], words[2], words[3]};
    if (past != 0) {
        const u32 last = words[4], shift = 8 * past;
        group = {__funnelshift_r(group.x, group.y, shift), __funnelshift_r(group.y, group.z, shift),
                 __funnelshift_r(group.z, group.w, shift), __funnelshift_r(group.w, last, shift)};
    }
    return group;
}

// Writes a piece with all threads of the CTA: zeros if there is no source.
__device__ inline void copy_piece(const u8* from, u8* to, u32 size) {
    const u32 to_border = (kGroup - reinterpret_cast<u64>(to) % kGroup) % kGroup;
    const u32 head = to_border < size ? to_border : size;
    const u32 num_groups = (size - head) / kGroup;
    const u32 tail = head + num_groups * kGroup;
    for (u32 at = threadIdx.x; at < head; at += blockDim.x) {
        to[at] = from == nullptr ? 0 : from[at];
    }
    uint4* const groups = reinterpret_cast<uint4*>(to + head);
    for (u32 group = threadIdx.x; group < num_groups; group += blockDim.x) {
        groups[group] =
            from == nullptr ? uint4{0, 0, 0, 0} : load_group(from + head + kGroup * group);
    }
    for (u32 at = tail + threadIdx.x; at < size; at += blockDim.x) {
        to[at] = from == nullptr ? 0 : from[at];
    }
}

}  // namespace gompfs

extern "C" __global__ void gather_pieces(const u64* sources, const u8* statuses, const u32* blocks,
                                         const u32* begins, const u32* sizes, const u64* targets,
                                         u8* output, u32 num_pieces) {
    for (u32 piece = blockIdx.x; piece < num_pieces; piece += gridDim.x) {
        const u32 block = blocks[piece];
        const u8* const content = reinterpret_cast<const u8*>(sources[block]);
        gompfs::copy_piece(statuses[block] == 0 ? content + begins[piece] : nullptr,
                           output + targets[piece], sizes[piece]);
    }
}

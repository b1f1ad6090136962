// Finds blocks in which one of many literals begins.
//
// A bitmap in shared memory excludes nearly all positions: no literal has its window there. At the
// others, the window is looked up in a hash table, and the literals that have it are compared, also
// over the ends of blocks. (In native/search, LiteralSetFinder does the same on
// the CPU with an automaton in place of the hash table.)
//
// Launch: one CTA of any number of whole warps per blocks_per_cta blocks.
// Mapping: a thread per 16 positions of a block. When a literal was found in the block, its other
//   positions are left out.
// Reads: a batch of num_blocks blocks (StreamText); table, a LiteralTable.
// Writes: found[i] = 1 if a literal begins in block i; otherwise nothing.
// Shared memory: 16 bytes, and the bitmap.
// Requires: 32 bytes after the last block are readable.
// Fails: never.
// Oracle: native/search/match/literal_set_finder.h, in test_search_kernels_on_host.py.
// Caller: gompfs/search/gpu/block_scan.py.
#include "search/stream_text.cuh"
#include "shared/search_tables.h"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

extern __shared__ uint4 shared_memory[];

namespace gompfs {

constexpr u32 kBitmapStart = 16;  // bytes of shared memory before the bitmap

class LiteralSearch {
  public:
    __device__ LiteralSearch(const StreamText& stream, const u8* table, const u32* bitmap,
                             u8* found)
        : stream_(stream),
          table_(table),
          header_(*reinterpret_cast<const LiteralTable*>(table)),
          window_mask_(header_.window_size == 4 ? 0xffffffffu
                                                : (1u << 8 * header_.window_size) - 1),
          case_bits_(header_.case_bits),
          bitmap_shift_(32 - header_.bitmap_log2),
          bitmap_(bitmap),
          found_(found) {}

    // Looks at the windows that begin in 16 bytes. Returns whether a literal begins in the block.
    __device__ bool search(u64 block, u32 at) const {
        const u8* const bytes = stream_.block(block) + at;
        const u32 size = stream_.sizes[block];
        const Vector vector(bytes);
        const u32 next = *reinterpret_cast<const u32*>(bytes + kVectorSize);
        u32 candidates = 0;
#pragma unroll
        for (u32 index = 0; index < kVectorSize; ++index) {
            const u32 low = vector.words[index / 4];
            const u32 high = index / 4 == 3 ? next : vector.words[(index / 4 + 1) % 4];
            const u32 window = folded(__funnelshift_r(low, high, index % 4 * 8));
            candidates |= has_bit(window_hash(window)) << index;
        }
        // A window that goes on in the next block cannot be read here.
        const u32 whole = size - min(size, header_.window_size - 1);
        if (at + kVectorSize > whole) {
            candidates |= at >= whole ? ~0u : ~0u << (whole - at);
        }
        candidates &= (1u << min(size - at, kVectorSize)) - 1;
        bool is_found = false;
        for (; candidates != 0; candidates &= candidates - 1) {
            const u32 position = at + static_cast<u32>(__ffs(static_cast<int>(candidates))) - 1;
            is_found |= compare(block, position);
        }
        return is_found;
    }

  private:
    __device__ u32 folded(u32 window) const { return (window | case_bits_) & window_mask_; }

    __device__ u32 has_bit(u32 hash) const {
        const u32 bit = hash >> bitmap_shift_;
        return bitmap_[bit / 32] >> bit % 32 & 1;
    }

    // Compares the literals whose window is at a position. A literal may begin in an earlier block.
    __device__ bool compare(u64 block, u32 at) const {
        u32 window = 0;
        Cursor cursor{stream_, block, at};
        for (u32 index = 0; index < header_.window_size; ++index, ++cursor.at) {
            if (!cursor.settle()) {
                return false;
            }
            window |= static_cast<u32>(cursor.byte()) << 8 * index;
        }
        window = folded(window);
        if (!has_bit(window_hash(window)) || !has_bit(other_window_hash(window))) {
            return false;
        }
        const LiteralTable& header = header_;
        const auto* const slots = reinterpret_cast<const LiteralSlot*>(table_ + header.slots);
        const auto* const literals =
            reinterpret_cast<const TableLiteral*>(table_ + header.literals);
        const u32 mask = (1u << header.slots_log2) - 1;
        u32 slot = window_hash(window) >> (32 - header.slots_log2);
        while (slots[slot].first != 0 && slots[slot].window != window) {
            slot = (slot + 1) & mask;
        }
        bool is_found = false;
        for (u32 literal = slots[slot].first; literal != 0; literal = literals[literal - 1].next) {
            is_found |= is_literal(literals[literal - 1], block, at);
        }
        return is_found;
    }

    // Whether a literal has its window at a position. Marks the block in which the literal begins,
    // and returns whether that is the block of the position.
    __device__ bool is_literal(const TableLiteral& literal, u64 block, u32 at) const {
        Cursor cursor{stream_, block, at};
        for (u32 index = 0; index < literal.window_offset; ++index) {
            if (!cursor.step_back()) {
                return false;
            }
        }
        const u64 first_block = cursor.block;
        const u8* const bytes = table_ + header_.pool + literal.begin;
        for (u32 index = 0; index < literal.size; ++index, ++cursor.at) {
            if (!cursor.settle() || lowered(cursor.byte()) != bytes[index]) {
                return false;
            }
        }
        found_[first_block] = 1;
        return first_block == block;
    }

    __device__ u8 lowered(u8 byte) const {
        return case_bits_ != 0 && byte - 'A' < 26u ? byte | 0x20 : byte;
    }

    const StreamText& stream_;
    const u8* table_;
    const LiteralTable& header_;
    u32 window_mask_, case_bits_, bitmap_shift_;
    const u32* bitmap_;
    u8* found_;
};

}  // namespace gompfs

extern "C" __global__ void find_literals(const u8* text, const u64* offsets, const u32* sizes,
                                         const u8* continues, u64 num_blocks, u64 blocks_per_cta,
                                         const u8* table, u8* found) {
    using gompfs::kVectorSize;
    const auto& header = *reinterpret_cast<const gompfs::LiteralTable*>(table);
    volatile u32* const is_done = reinterpret_cast<u32*>(shared_memory);
    u32* const bitmap = reinterpret_cast<u32*>(shared_memory) + gompfs::kBitmapStart / 4;
    const u32* const stored = reinterpret_cast<const u32*>(table + header.bitmap);
    for (u32 word = threadIdx.x; word < 1u << header.bitmap_log2 >> 5; word += blockDim.x) {
        bitmap[word] = stored[word];
    }
    const gompfs::StreamText stream{text, offsets, sizes, continues};
    const gompfs::LiteralSearch search(stream, table, bitmap, found);
    const u64 first = blockIdx.x * blocks_per_cta;
    const u64 end = min(first + blocks_per_cta, num_blocks);
    for (u64 block = first; block < end; ++block) {
        __syncthreads();
        if (threadIdx.x == 0) {
            *is_done = 0;
        }
        __syncthreads();
        const u32 size = sizes[block];
        for (u32 at = threadIdx.x * kVectorSize; at < size && *is_done == 0;
             at += blockDim.x * kVectorSize) {
            // Other threads may read the flag meanwhile: with either value the answer is the same.
            if (search.search(block, at)) {
                *is_done = 1;
            }
        }
    }
}

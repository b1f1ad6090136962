// Measures blocks of text for a search: counts their line feeds, and finds bytes that change how a
// file is searched.
//
// Launch: one CTA of any number of whole warps per block.
// Mapping: a thread per 16 bytes.
// Reads: a batch of blocks (StreamText).
// Writes: facts[i], bits of BlockFact; num_lines[i], the number of line feeds; last_lines[i], the
//   offset after the last line feed, or 0.
// Shared memory: 12 bytes.
// Requires: 16 bytes after the last block are readable.
// Fails: never.
// Oracle: tests/kernels/test_search_kernels_on_host.py.
// Caller: gompfs/search/gpu/block_scan.py.
#include "search/stream_text.cuh"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

extern __shared__ uint4 shared_memory[];

namespace gompfs {

// A NUL; a byte order mark of UTF-16; a character outside of ASCII that folds to k or s.
enum BlockFact : u32 { kHasNul = 1, kHasMark = 2, kHasFolding = 4 };

struct BlockMeasures {
    u32 facts, num_lines, last_line;
};

// The facts about the characters that begin in 16 bytes, some of which are not ASCII.
__device__ inline u32 rare_facts(const StreamText& stream, u64 block, u32 begin, u32 end) {
    u32 facts = 0;
    for (u32 at = begin; at < end; ++at) {
        Cursor cursor{stream, block, at};
        const u8 first = cursor.byte();
        if (first != 0xff && first != 0xfe && first != 0xc5 && first != 0xe2) {
            continue;
        }
        ++cursor.at;
        if (!cursor.settle()) {
            continue;
        }
        const u8 second = cursor.byte();
        facts |=
            (first == 0xff && second == 0xfe) || (first == 0xfe && second == 0xff) ? kHasMark : 0;
        facts |= first == 0xc5 && second == 0xbf ? kHasFolding : 0;
        ++cursor.at;
        if (first == 0xe2 && second == 0x84 && cursor.settle() && cursor.byte() == 0xaa) {
            facts |= kHasFolding;
        }
    }
    return facts;
}

// Adds what 16 bytes have. Bytes from `end` on do not count.
__device__ inline void measure(const StreamText& stream, u64 block, u32 at, u32 end,
                               BlockMeasures& measures) {
    const Vector vector(stream.block(block) + at);
    bool has_others = false;
    for (u32 index = 0; index < 4; ++index) {
        const u32 first = at + 4 * index;
        const u32 word = vector.words[index];
        // Bits of bytes beyond the end are dropped.
        const u32 count = first >= end ? 0 : min(end - first, 4u);
        const u32 kept = count == 4 ? 0xffffffffu : (1u << 8 * count) - 1;
        const u32 lines = equal_bytes(word, kLineFeeds) & kept;
        measures.facts |= (equal_bytes(word, 0) & kept) != 0 ? kHasNul : 0;
        measures.num_lines += __popc(lines);
        if (lines != 0) {
            measures.last_line = first + (31 - __clz(lines)) / 8 + 1;
        }
        has_others |= (word & kept & 0x80808080u) != 0;
    }
    if (has_others) {
        measures.facts |= rare_facts(stream, block, at, min(at + kVectorSize, end));
    }
}

}  // namespace gompfs

extern "C" __global__ void measure_blocks(const u8* text, const u64* offsets, const u32* sizes,
                                          const u8* continues, u32* facts, u32* num_lines,
                                          u32* last_lines) {
    u32* const totals = reinterpret_cast<u32*>(shared_memory);
    const gompfs::StreamText stream{text, offsets, sizes, continues};
    const u64 block = blockIdx.x;
    if (threadIdx.x < 3) {
        totals[threadIdx.x] = 0;
    }
    __syncthreads();
    gompfs::BlockMeasures measures{0, 0, 0};
    const u32 size = sizes[block];
    for (u32 at = threadIdx.x * gompfs::kVectorSize; at < size;
         at += blockDim.x * gompfs::kVectorSize) {
        gompfs::measure(stream, block, at, size, measures);
    }
    if (measures.facts != 0) {
        atomicOr(&totals[0], measures.facts);
    }
    atomicAdd(&totals[1], measures.num_lines);
    atomicMax(&totals[2], measures.last_line);
    __syncthreads();
    if (threadIdx.x == 0) {
        facts[block] = totals[0];
        num_lines[block] = totals[1];
        last_lines[block] = totals[2];
    }
}

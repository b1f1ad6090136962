// Finds blocks in which a match of a regular expression ends, by an automaton over bytes.
//
// The automaton begins anew in each line, so lines can be read at the same time. A thread reads the
// lines that begin in a segment of the text, the last one to its end. A line that goes on for more
// than kLongLine bytes after its segment is not read to its end; blocks in which such a line goes
// on count as found.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per segment of kSegmentSize bytes; each block has segments_per_block of them.
// Reads: a batch of num_blocks blocks (StreamText); table, an AutomatonTable.
// Writes: found[i] = 1 if a match ends in block i, or a long line goes on there; otherwise nothing.
//   A line that begins before the first block is not read; a line that ends after the last block is
//   read to the end of that block.
// Shared memory: shared_bytes, the size of the table, if the table is copied to shared memory; else
//   none.
// Requires: 16 bytes after the last block are readable.
// Fails: never.
// Oracle: tests/kernels/test_search_kernels_on_host.py.
// Caller: gompfs/search/gpu/block_scan.py.
#include "search/stream_text.cuh"
#include "shared/search_tables.h"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

extern __shared__ uint4 shared_memory[];

namespace gompfs {

constexpr u32 kSegmentSize = 512;
constexpr u32 kLongLine = 16 << 10;

class AutomatonSearch {
  public:
    __device__ AutomatonSearch(const StreamText& stream, const u8* table, u8* found)
        : stream_(stream),
          num_classes_(reinterpret_cast<const AutomatonTable*>(table)->num_classes),
          classes_(reinterpret_cast<const AutomatonTable*>(table)->classes),
          transitions_(reinterpret_cast<const u16*>(table + sizeof(AutomatonTable))),
          found_(found) {}

    // Reads the lines that begin in a segment.
    __device__ void search(u64 block, u32 begin) const {
        const u32 end = min(begin + kSegmentSize, stream_.sizes[block]);
        const u32 line = first_line(block, begin, end);
        if (line == kNone) {
            if (!is_line_near(block, begin)) {
                mark_long_line(block, end);
            }
        } else if (line < end) {
            read_lines(block, line, end);
        }
    }

  private:
    static constexpr u32 kNone = ~0u;

    __device__ u32 step(u32 state, u8 byte) const {
        return transitions_[state * num_classes_ + classes_[byte]];
    }

    // The first beginning of a line in a segment; its end if the last byte is a line feed; or
    // kNone.
    __device__ u32 first_line(u64 block, u32 begin, u32 end) const {
        Cursor before{stream_, block, begin};
        if (before.step_back() ? before.byte() == '\n' : !before.is_cut()) {
            return begin;
        }
        const u8* const bytes = stream_.block(block);
        for (u32 at = begin; at < end; at += kVectorSize) {
            const Vector vector(bytes + at);
            for (u32 word = 0; word < 4; ++word) {
                const u32 lines = equal_bytes(vector.words[word], kLineFeeds);
                if (lines != 0) {
                    const u32 line =
                        at + 4 * word + static_cast<u32>(__ffs(static_cast<int>(lines))) / 8;
                    return line <= end ? line : kNone;
                }
            }
        }
        return kNone;
    }

    // Whether the line that goes on at a position is read by the thread of its beginning.
    __device__ bool is_line_near(u64 block, u32 at) const {
        Cursor cursor{stream_, block, at};
        for (u32 count = 0; count < kLongLine; ++count) {
            if (!cursor.step_back()) {
                return !cursor.is_cut();
            }
            if (cursor.byte() == '\n') {
                return true;
            }
        }
        return false;
    }

    // The line may end in the next segment, whose thread does not read the bytes before its
    // segment.
    __device__ void mark_long_line(u64 block, u32 end) const {
        found_[block] = 1;
        Cursor next{stream_, block, end};
        if (next.settle()) {
            found_[next.block] = 1;
        }
    }

    __device__ void read_lines(u64 block, u32 at, u32 end) const {
        const u8* const bytes = stream_.block(block);
        u32 state = 0;
        bool is_found = false;
        const auto read = [&](u8 byte) {
            state = step(state, byte);
            is_found |= state == kMatchedState;
        };
        for (; at < end && at % kVectorSize != 0; ++at) {
            read(bytes[at]);
        }
        for (; at + kVectorSize <= end; at += kVectorSize) {
            const Vector vector(bytes + at);
#pragma unroll
            for (u32 index = 0; index < kVectorSize; ++index) {
                read(vector.byte(index));
            }
        }
        for (; at < end; ++at) {
            read(bytes[at]);
        }
        if (is_found) {
            found_[block] = 1;
        }
        if (bytes[end - 1] != '\n') {
            read_on(Cursor{stream_, block, end}, state);
        }
    }

    // Reads the end of a line.
    __device__ void read_on(Cursor cursor, u32 state) const {
        for (u32 count = 0; count < kLongLine + 2 * kSegmentSize && cursor.settle(); ++count) {
            const u8 byte = cursor.byte();
            if (byte == '\n') {
                return;
            }
            state = step(state, byte);
            if (state == kMatchedState) {
                found_[cursor.block] = 1;
            }
            ++cursor.at;
        }
    }

    const StreamText& stream_;
    const u32 num_classes_;
    const u8* const classes_;
    const u16* const transitions_;
    u8* const found_;
};

}  // namespace gompfs

extern "C" __global__ void run_automaton(const u8* text, const u64* offsets, const u32* sizes,
                                         const u8* continues, u64 num_blocks,
                                         u64 segments_per_block, const u8* table, u32 shared_bytes,
                                         u8* found) {
    u8* const copy = reinterpret_cast<u8*>(shared_memory);
    for (u32 at = threadIdx.x * 4; at < shared_bytes; at += blockDim.x * 4) {
        *reinterpret_cast<u32*>(copy + at) = *reinterpret_cast<const u32*>(table + at);
    }
    __syncthreads();
    const gompfs::StreamText stream{text, offsets, sizes, continues};
    const gompfs::AutomatonSearch search(stream, shared_bytes != 0 ? copy : table, found);
    gompfs::for_each_index(0, num_blocks * segments_per_block, [&](u64 index) {
        const u64 block = index / segments_per_block;
        const u32 begin = static_cast<u32>(index % segments_per_block) * gompfs::kSegmentSize;
        if (begin < sizes[block]) {
            search.search(block, begin);
        }
    });
}

// Decodes triples (tools/experiments/wesley; K. Wesley, "Massively parallel LZ77 compression and
// decompression on the GPU", Texas State University, 2022). Every byte of the text gets a parent:
// the byte that its match copies, or one of 256 roots, which stand for the values of a byte. All
// bytes then look for their roots at once.
//
// Launch: any shape; `write_parents` with CTAs of whole warps.
// Mapping: `measure_triples`: a thread per triple; `write_parents`: a warp per 32 triples, whose
//   lanes share the bytes of all of them; `find_roots`: a thread per byte.
// Reads, writes: as each kernel says.
// Shared memory: none.
// Requires: texts of fewer than 2^32 - 256 bytes.
// Fails: `write_parents` counts triples that are not valid in *num_bad, and a text of another size
//   too. The bytes of such triples become roots, so that every byte has a root if all parents were
//   roots before.
// Oracle: tools/experiments/wesley/triples.cpp (tests/tools/test_wesley.py).
// Caller: tools/experiments/wesley/decoder.py.
#include "shared/grid.cuh"

namespace gompfs {

struct Triple {
    u32 distance;  // 0: the other two are bytes
    u32 second;    // the length of the match, or the second byte
    u32 value;     // the byte after the match, or the first byte
};

__device__ inline Triple load_triple(const u8* triples, u64 index) {
    return {triples[3 * index], triples[3 * index + 1], triples[3 * index + 2]};
}

// The parent of byte `offset` of a triple's bytes, which is at `position` of the text.
__device__ inline u32 parent_of(const Triple& triple, u32 offset, u64 position, u64 size) {
    const bool is_match = triple.distance != 0 && offset < triple.second;
    const bool is_second = triple.distance == 0 && offset != 0;
    return static_cast<u32>(is_match ? position - triple.distance
                                     : size + (is_second ? triple.second : triple.value));
}

}  // namespace gompfs

// Writes the number of bytes that each triple stands for.
extern "C" __global__ void measure_triples(const unsigned char* triples, unsigned long long count,
                                           unsigned int* sizes) {
    using namespace gompfs;
    for_each_index(0, count, [&](u64 index) {
        const Triple triple = load_triple(triples, index);
        sizes[index] = triple.distance == 0 ? 2 : triple.second + 1;
    });
}

// Writes the parent of each of the `size` bytes: the position of another byte before it, or `size`
// plus its value. ends[i] is the number of bytes of triples 0 to i.
extern "C" __global__ void write_parents(const unsigned char* triples,
                                         const unsigned long long* ends, unsigned long long count,
                                         unsigned long long size, unsigned int* parents,
                                         unsigned int* num_bad) {
    using namespace gompfs;
    const u64 lane = static_cast<u64>(lane_id());
    for (u64 first = thread_number() - lane; first < count; first += num_threads()) {
        const u64 index = first + lane;
        const bool exists = index < count;
        Triple triple = exists ? load_triple(triples, index) : Triple{0, 0, 0};
        const u64 begin = first == 0 ? 0 : ends[first - 1];
        const u32 end = static_cast<u32>(ends[min(index, count - 1)] - begin);
        const u32 own = triple.distance == 0 ? 2 : triple.second + 1;
        if (index == count - 1) {
            const u64 total = begin + end;
            if (total < size || total > size + (triple.distance == 0 ? 1 : 0)) {
                atomicAdd(num_bad, 1u);
            }
        }
        if (exists && triple.distance > begin + end - own) {
            triple.distance = 0;
            atomicAdd(num_bad, 1u);
        }
        const u32 packed = triple.distance << 16 | triple.second << 8 | triple.value;
        const u32 all = __shfl_sync(kAllLanes, end, kWarpSize - 1);
        for (u32 done = 0; done < all; done += kWarpSize) {
            // The byte after the last one is that of the last triple again; it is not written.
            const u32 offset = min(done + lane_id(), all - 1);
            const int number = count_up_to(end, offset);
            const u32 before = __shfl_sync(kAllLanes, end, max(number - 1, 0));
            const u32 found = __shfl_sync(kAllLanes, packed, number);
            const u64 position = begin + offset;
            if (done + lane_id() < all && position < size) {
                parents[position] = parent_of({found >> 16, found >> 8 & 255, found & 255},
                                              offset - (number == 0 ? 0 : before), position, size);
            }
        }
    }
}

// Writes each byte: it follows the parents to a root, and shortens the way for others. It does not
// matter which of these stores another thread sees: all lead to the same root.
extern "C" __global__ void find_roots(volatile unsigned int* parents, unsigned long long size,
                                      unsigned char* text) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        u64 here = position;
        u32 parent = parents[here];
        while (parent < size) {
            const u32 next = parents[parent];
            parents[here] = next;
            here = parent;
            parent = next;
        }
        text[position] = static_cast<u8>(parent - size);
    });
}

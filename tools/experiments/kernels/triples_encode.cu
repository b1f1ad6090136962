// Encodes text as triples (tools/experiments/wesley; K. Wesley, "Massively parallel LZ77
// compression and decompression on the GPU", Texas State University, 2022). A match is found for
// every position; the triples of the result begin at the positions that a walk from position 0
// along `nexts` visits. These are found in two ways: by chains of positions, as in the thesis, and
// by maps of tiles.
//
// Launch: `find_matches`, `map_tiles` and `mark_tiles`: a CTA of kThreads threads for each tile of
//   as many positions as the constants say; the others: any shape.
// Mapping: a thread per position, except where a kernel says otherwise.
// Reads, writes: as each kernel says.
// Shared memory: as the constants say.
// Requires: fewer than 2^32 - 256 positions.
// Oracle: tools/experiments/wesley/triples.cpp (tests/tools/test_wesley.py).
// Caller: tools/experiments/wesley/encoder.py.
#include "shared/grid.cuh"

namespace gompfs {

constexpr u32 kTripleWindow = 256;  // the farthest distance and the longest match are below it
constexpr u32 kMinLength = 2;
constexpr u32 kSearchTile = 512;
constexpr u32 kSegment = 16;  // sources that a search compares at once
constexpr u32 kMapTile = 2048;
constexpr u32 kMapThreads = 256;
constexpr u32 kPerThread = kMapTile / kMapThreads;
// A step covers two positions or more, so that 2^10 steps leave a tile.
constexpr int kLevels = 10;
// Dynamic shared memory of the kernels with tiles, in bytes.
constexpr u32 kSearchBytes = kTripleWindow + kSearchTile + kTripleWindow + 2 * sizeof(u32);
constexpr u32 kMapBytes = 2 * kMapTile * sizeof(u16);
constexpr u32 kMarkBytes = kLevels * kMapTile * sizeof(u16) + kMapTile;

struct TripleMatch {
    u32 length;  // 0 for none
    u32 distance;
};

// The four bytes from `index` on, which need not be a multiple of 4.
__device__ inline u32 load_word(const u32* window, u32 index) {
    return __funnelshift_r(window[index / 4], window[index / 4 + 1], index % 4 * 8);
}

// The number of equal bytes from `source` and `here` on, at most `limit`.
__device__ inline u32 common_length(const u32* window, u32 source, u32 here, u32 limit) {
    for (u32 length = 0; length < limit; length += 4) {
        const u32 differing = load_word(window, source + length) ^ load_word(window, here + length);
        if (differing != 0) {
            return min(length + (__ffs(static_cast<int>(differing)) - 1) / 8, limit);
        }
    }
    return limit;
}

// Returns a mask of the sources in a segment that agree with `own` in the bytes of `mask`. The
// first source is the lowest bit. `words` are the words of the segment, and the word after it.
// Nothing here depends on what was found before, so all comparisons of a segment can be in flight
// at once.
__device__ inline u32 agreeing_sources(const u32* words, u32 own, u32 mask) {
    u32 agreeing = 0;
#pragma unroll
    for (u32 source = 0; source < kSegment; ++source) {
        const u32 found = __funnelshift_r(words[source / 4], words[source / 4 + 1], source % 4 * 8);
        agreeing |= ((found ^ own) & mask) == 0 ? 1u << source : 0;
    }
    return agreeing;
}

// The longest match, and the farthest of these. `here` is the position in `window`; `limit` is the
// longest length allowed, and `farthest` the largest distance.
//
// Sources are searched from the farthest on, in segments. A source is looked at closely only if its
// first four bytes (or as many as a longer match needs) agree.
__device__ inline TripleMatch find_triple_match(const u32* window, u32 here, u32 limit,
                                                u32 farthest) {
    const u8* const bytes = reinterpret_cast<const u8*>(window);
    const u32 own = load_word(window, here);
    const u32 first = here - farthest;
    TripleMatch best{kMinLength - 1, 0};
    u32 start = here - kTripleWindow + (kTripleWindow - farthest) / kSegment * kSegment;
    u32 allowed = ~0u << (first - start);
    for (; start < here && best.length < limit; start += kSegment, allowed = ~0u) {
        const u32* const aligned = window + start / 4;
        u32 words[kSegment / 4 + 1];
#pragma unroll
        for (u32 index = 0; index <= kSegment / 4; ++index) {
            words[index] = __funnelshift_r(aligned[index], aligned[index + 1], start % 4 * 8);
        }
        const u32 mask = best.length < 3 ? (1u << 8 * (best.length + 1)) - 1 : ~0u;
        u32 agreeing = agreeing_sources(words, own, mask) & allowed;
        for (; agreeing != 0 && best.length < limit; agreeing &= agreeing - 1) {
            const u32 source = start + __ffs(static_cast<int>(agreeing)) - 1;
            // A longer match must agree in the byte after the best one.
            if (bytes[source + best.length] == bytes[here + best.length]) {
                const u32 length = common_length(window, source, here, limit);
                best = length > best.length ? TripleMatch{length, here - source} : best;
            }
        }
    }
    return best.distance == 0 ? TripleMatch{0, 0} : best;
}

// Returns the position after one step from `position`, both relative to the start of the tile.
// `nexts` has the next position of each position of the tile. A position after the tile is returned
// as it is.
__device__ inline u32 step_from(const u16* nexts, u32 position) {
    return position < kMapTile ? nexts[position] : position;
}

// Loads the steps of a tile: the position after each, relative to the tile's start. Steps from
// positions after the text leave the tile.
__device__ inline void load_steps(const u32* nexts, u64 start, u64 size, u16* steps) {
    for (u32 index = threadIdx.x; index < kMapTile; index += kMapThreads) {
        const u64 position = start + index;
        steps[index] = static_cast<u16>(position < size ? nexts[position] - start : kMapTile);
    }
}

}  // namespace gompfs

// A thread per position of a tile. Writes the length (0 for none) and distance of the match of each
// position, and the position after its triple: nexts[i] is at most `size`.
extern "C" __global__ void find_matches(const unsigned char* text, unsigned long long size,
                                        unsigned char* lengths, unsigned char* distances,
                                        unsigned int* nexts) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u8* const window = reinterpret_cast<u8*>(shared_memory);
    const u64 start = static_cast<u64>(blockIdx.x) * kSearchTile;
    for (u32 index = threadIdx.x; index < kSearchBytes; index += blockDim.x) {
        const u64 position = start + index;  // plus kTripleWindow
        window[index] = position >= kTripleWindow && position - kTripleWindow < size
                            ? text[position - kTripleWindow]
                            : 0;
    }
    __syncthreads();
    const u64 position = start + threadIdx.x;
    if (position >= size) {
        return;
    }
    const u32 limit = static_cast<u32>(min(u64{kTripleWindow - 1}, size - position - 1));
    const u32 farthest = static_cast<u32>(min(u64{kTripleWindow - 1}, position));
    const TripleMatch match = find_triple_match(reinterpret_cast<const u32*>(shared_memory),
                                                kTripleWindow + threadIdx.x, limit, farthest);
    lengths[position] = static_cast<u8>(match.length);
    distances[position] = static_cast<u8>(match.distance);
    const u64 next = position + (match.length == 0 ? 2 : match.length + 1);
    nexts[position] = static_cast<u32>(min(next, static_cast<u64>(size)));
}

// Chains: counts the predecessors of each position.
extern "C" __global__ void count_predecessors(const unsigned int* nexts, unsigned long long size,
                                              unsigned int* degrees) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        if (nexts[position] < size) {
            atomicAdd(&degrees[nexts[position]], 1u);
        }
    });
}

// Chains: the head of a chain is a position that has not exactly one live predecessor. The link of
// a head leads to itself; the link of another live position leads to its predecessor.
extern "C" __global__ void link_chains(const unsigned int* nexts, const unsigned int* degrees,
                                       const unsigned char* alive, unsigned long long size,
                                       unsigned int* links) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        const u32 next = nexts[position];
        if (degrees[position] != 1) {
            links[position] = static_cast<u32>(position);
        }
        if (alive[position] && next < size && degrees[next] == 1) {
            links[next] = static_cast<u32>(position);
        }
    });
}

// Chains: finds the head of the chain of each live position. On its way along `links`, a thread
// shortens the way of others; it does not matter which of these stores another thread sees.
extern "C" __global__ void find_heads(volatile unsigned int* links, const unsigned char* alive,
                                      unsigned long long size, unsigned int* heads) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        u32 here = static_cast<u32>(position);
        u32 head = alive[position] ? links[here] : here;
        for (u32 next = links[head]; alive[position] && next != head; next = links[head]) {
            links[here] = next;
            here = head;
            head = next;
        }
        heads[position] = head;
    });
}

// Chains: removes each chain that no other chain leads to, except that of position 0 ("dangling").
// The last position of a removed chain no longer counts as a predecessor. `before` is a copy of
// `degrees`. Sets *has_changed if a chain was removed.
extern "C" __global__ void remove_dangling(const unsigned int* nexts, const unsigned int* heads,
                                           const unsigned int* before, unsigned long long size,
                                           unsigned int* degrees, unsigned char* alive,
                                           unsigned int* has_changed) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        const u32 head = heads[position];
        if (!alive[position] || head == 0 || before[head] != 0) {
            return;
        }
        alive[position] = 0;
        *has_changed = 1;
        const u32 next = nexts[position];
        if (next < size && heads[next] != head) {
            atomicAdd(&degrees[next], ~0u);
        }
    });
}

// Maps: for each tile and each of the first kTripleWindow positions of the tile, where a walk from
// there enters the next tile, relative to that tile's start.
extern "C" __global__ void map_tiles(const unsigned int* nexts, unsigned long long size,
                                     unsigned char* maps) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u16* steps = reinterpret_cast<u16*>(shared_memory);
    u16* doubled = steps + kMapTile;
    load_steps(nexts, static_cast<u64>(blockIdx.x) * kMapTile, size, steps);
    __syncthreads();
    for (int level = 0; level < kLevels; ++level) {
        for (u32 index = threadIdx.x; index < kMapTile; index += kMapThreads) {
            doubled[index] = static_cast<u16>(step_from(steps, steps[index]));
        }
        __syncthreads();
        u16* const other = steps;
        steps = doubled;
        doubled = other;
    }
    maps[static_cast<u64>(blockIdx.x) * kTripleWindow + threadIdx.x] =
        static_cast<u8>(steps[threadIdx.x] - kMapTile);
}

// Maps: one step of a prefix sum over tiles, in which the composition of maps takes the place of
// addition. A thread per element of a map.
extern "C" __global__ void compose_maps(const unsigned char* maps, unsigned long long num_tiles,
                                        unsigned long long step, unsigned char* composed) {
    using namespace gompfs;
    for_each_index(0, num_tiles * kTripleWindow, [&](u64 index) {
        const u64 tile = index / kTripleWindow;
        composed[index] = tile < step
                              ? maps[index]
                              : maps[tile * kTripleWindow + maps[index - step * kTripleWindow]];
    });
}

// Maps: marks the positions of each tile that the walk from position 0 visits. `entries` are the
// composed maps. Positions are marked at the largest distance in steps first.
extern "C" __global__ void mark_tiles(const unsigned int* nexts, unsigned long long size,
                                      const unsigned char* entries, unsigned char* alive) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u16* const levels = reinterpret_cast<u16*>(shared_memory);
    u8* const marks = reinterpret_cast<u8*>(levels + kLevels * kMapTile);
    const u64 start = static_cast<u64>(blockIdx.x) * kMapTile;
    load_steps(nexts, start, size, levels);
    for (u32 index = threadIdx.x; index < kMapTile; index += kMapThreads) {
        marks[index] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        marks[blockIdx.x == 0 ? 0 : entries[(blockIdx.x - 1ull) * kTripleWindow]] = 1;
    }
    for (int level = 1; level < kLevels; ++level) {
        const u16* const steps = levels + (level - 1) * kMapTile;
        for (u32 index = threadIdx.x; index < kMapTile; index += kMapThreads) {
            levels[level * kMapTile + index] = static_cast<u16>(step_from(steps, steps[index]));
        }
        __syncthreads();
    }
    for (int level = kLevels - 1; level >= 0; --level) {
        u32 targets[kPerThread];
#pragma unroll
        for (u32 part = 0; part < kPerThread; ++part) {
            const u32 index = part * kMapThreads + threadIdx.x;
            targets[part] = marks[index] ? levels[level * kMapTile + index] : kMapTile;
        }
        __syncthreads();
#pragma unroll
        for (u32 part = 0; part < kPerThread; ++part) {
            if (targets[part] < kMapTile) {
                marks[targets[part]] = 1;
            }
        }
        __syncthreads();
    }
    for (u32 index = threadIdx.x; index < kMapTile && start + index < size; index += kMapThreads) {
        alive[start + index] = marks[index];
    }
}

// Writes the triple of each position that is marked in `alive`; ranks[i] is the number of marks up
// to position i.
extern "C" __global__ void write_triples(const unsigned char* text, unsigned long long size,
                                         const unsigned char* lengths,
                                         const unsigned char* distances, const unsigned char* alive,
                                         const unsigned int* ranks, unsigned char* triples) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        if (!alive[position]) {
            return;
        }
        u8* const triple = triples + 3ull * (ranks[position] - 1);
        const u32 length = lengths[position];
        const bool has_second = position + 1 < size;
        triple[0] = distances[position];
        triple[1] = static_cast<u8>(length != 0 ? length : has_second ? text[position + 1] : 0);
        triple[2] = text[position + length];
    });
}

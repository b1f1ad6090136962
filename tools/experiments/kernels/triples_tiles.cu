// Finds the bytes of a text from the parents that triples_decode.cu wrote, without following long
// chains: the way from a byte to its root is found within a tile first, and then from tile to tile.
//
// Distances are below 256. So the bytes of a tile depend on the last 256 bytes of the tile before
// (its window) and on nothing else. `resolve_tiles` gives each byte a code: the value of the byte,
// or the number of the byte in the window that has the same value. The codes of the tile's own last
// 256 bytes are a map: they tell how the window of the next tile follows from the window of this
// tile. Maps are composed within groups of tiles, then from group to group, so that `write_tiles`
// takes three steps at most.
//
// Launch: `resolve_tiles`: a CTA of kRootThreads threads for each tile; `compose_windows`: a CTA of
//   kRootWindow threads for each group; `write_tiles`: any shape.
// Mapping: a thread per byte of a tile, of a window, or of the text.
// Reads, writes: as each kernel says.
// Shared memory: as the constants say.
// Requires: parents less than 256 before their bytes, or roots.
// Fails: never; other parents give a text that is wrong.
// Oracle: tools/experiments/wesley/triples.cpp (tests/tools/test_wesley.py).
// Caller: tools/experiments/wesley/decoder.py.
#include "shared/grid.cuh"

namespace gompfs {

constexpr u32 kRootTile = 4096;
constexpr u32 kRootThreads = 512;
constexpr u32 kRootWindow = 256;
constexpr u32 kTileGroup = 64;   // tiles
constexpr int kRootRounds = 12;  // each doubles the steps that are taken; 2^12 steps leave a tile
static_assert(1 << kRootRounds == kRootTile);
// Dynamic shared memory, in bytes.
constexpr u32 kResolveBytes = 2 * kRootTile * sizeof(u16);
constexpr u32 kComposeBytes = 2 * kRootWindow * sizeof(u16);

// A code below kRootTile is a byte of the same tile.
constexpr u32 kInWindow = 0x4000;  // a byte of the window before the tile, in the lowest 8 bits
constexpr u32 kIsValue = 0x8000;   // the value is in the lowest 8 bits
constexpr u32 kLowest = 255;

__device__ inline u16 tile_code_of(u32 parent, u64 size, u64 start) {
    if (parent >= size) {
        return static_cast<u16>(kIsValue | static_cast<u32>(parent - size) % kRootWindow);
    }
    const u32 code = parent >= start
                         ? static_cast<u32>(parent - start) % kRootTile
                         : kInWindow | static_cast<u32>(parent + kRootWindow - start) % kRootWindow;
    return static_cast<u16>(code);
}

// Translates `code`, a code in the window that the map leads to, to a code in the window where the
// map begins.
__device__ inline u32 follow(u32 code, const u16* map) {
    return (code & kInWindow) != 0 ? map[code & kLowest] : code;
}

}  // namespace gompfs

// Writes the code of each byte, and the codes of each tile's last kRootWindow bytes to `maps`.
extern "C" __global__ void resolve_tiles(const unsigned int* parents, unsigned long long size,
                                         unsigned short* codes, unsigned short* maps) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u16* now = reinterpret_cast<u16*>(shared_memory);
    u16* then = now + kRootTile;
    const u64 start = static_cast<u64>(blockIdx.x) * kRootTile;
    for (u32 index = threadIdx.x; index < kRootTile; index += blockDim.x) {
        const u64 position = start + index;
        now[index] = position < size ? tile_code_of(parents[position], size, start)
                                     : static_cast<u16>(kIsValue);
    }
    __syncthreads();
    bool pending = true;
    for (int round = 0; round < kRootRounds && __syncthreads_or(pending); ++round) {
        pending = false;
        for (u32 index = threadIdx.x; index < kRootTile; index += blockDim.x) {
            const u16 code = now[index];
            const u16 next = code < kRootTile ? now[code] : code;
            then[index] = next;
            pending |= next < kRootTile;
        }
        __syncthreads();
        u16* const other = now;
        now = then;
        then = other;
    }
    for (u32 index = threadIdx.x; index < kRootTile && start + index < size; index += blockDim.x) {
        codes[start + index] = now[index];
    }
    if (threadIdx.x < kRootWindow) {
        maps[static_cast<u64>(blockIdx.x) * kRootWindow + threadIdx.x] =
            now[kRootTile - kRootWindow + threadIdx.x];
    }
}

// Composes the maps of each group of `group_size` maps: then every map of a group begins at the
// window before the group. The last map of each group is also written to `last_maps`, unless
// `last_maps` is null.
extern "C" __global__ void compose_windows(unsigned short* maps, unsigned long long num_maps,
                                           unsigned long long group_size,
                                           unsigned short* last_maps) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u16* before = reinterpret_cast<u16*>(shared_memory);
    u16* after = before + kRootWindow;
    const u64 first = blockIdx.x * group_size;
    const u64 end = min(first + group_size, num_maps);
    u32 code = maps[first * kRootWindow + threadIdx.x];
    before[threadIdx.x] = static_cast<u16>(code);
    for (u64 map = first + 1; map < end; ++map) {
        const u64 index = map * kRootWindow + threadIdx.x;
        code = maps[index];  // loaded while others come to the barrier
        __syncthreads();
        code = follow(code, before);
        maps[index] = after[threadIdx.x] = static_cast<u16>(code);
        u16* const other = before;
        before = after;
        after = other;
    }
    if (last_maps != nullptr) {
        last_maps[blockIdx.x * kRootWindow + threadIdx.x] = static_cast<u16>(code);
    }
}

// Writes the text.
extern "C" __global__ void write_tiles(const unsigned short* codes, unsigned long long size,
                                       const unsigned short* maps, const unsigned short* windows,
                                       unsigned char* text) {
    using namespace gompfs;
    for_each_index(0, size, [&](u64 position) {
        const u64 tile = position / kRootTile;
        u32 code = codes[position];
        if (tile != 0) {
            code = follow(code, maps + (tile - 1) * kRootWindow);
        }
        if (tile > kTileGroup) {
            code = follow(code, windows + ((tile - 1) / kTileGroup - 1) * kRootWindow);
        }
        text[position] = static_cast<u8>(code);
    });
}

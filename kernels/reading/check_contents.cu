// Compares the contents of decoded blocks with their checksums.
//
// Launch: CTAs of any number of whole warps, any number of them.
// Mapping: a warp takes every block whose number is its own modulo the number of warps.
// Reads: block i, sizes[i] bytes at the address sources[i], and its checksum checksums[i].
// Writes: statuses[i], where it was 0 and the checksum differs.
// Shared memory: none.
// Requires: blocks at multiples of 8. Blocks with another status than 0 are not read.
// Fails: statuses[i] becomes kStatusBadContent.
// Oracle: xxHash (tests/kernels/test_reading_kernels_on_host.py).
// Caller: gompfs/gpu/decode/plan_decoder.py.
#include "reading/xxh3.cuh"
#include "shared/grid.cuh"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

namespace gompfs {

constexpr u8 kStatusBadContent = 4;  // the value of gompfs.codec.BlockStatus

}  // namespace gompfs

extern "C" __global__ void check_contents(const u64* sources, const u32* sizes,
                                          const u64* checksums, u8* statuses, u32 num_blocks) {
    const u64 num_warps = gompfs::num_threads() / gompfs::kWarpSize;
    for (u64 block = gompfs::thread_number() / gompfs::kWarpSize; block < num_blocks;
         block += num_warps) {
        if (statuses[block] != 0) {
            continue;
        }
        const u8* const content = reinterpret_cast<const u8*>(sources[block]);
        const u64 checksum = gompfs::hash_content(content, sizes[block]);
        __syncwarp();  // all lanes have read the status
        if (gompfs::lane_id() == 0 && checksum != checksums[block]) {
            statuses[block] = gompfs::kStatusBadContent;
        }
    }
}

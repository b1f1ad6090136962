// A round of multi-round resolution as a kernel of its own (match_list.cuh).
//
// Launch: CTAs of kThreadsPerCta threads.
// Mapping: a warp per block; it takes the next block when it is done.
// Reads: the matches that are listed for each block, and the output so far.
// Writes: the output of the matches whose sources are final; lists the others, and adds their
//   number to *num_waiting.
// Shared memory: none.
// Requires: lists made by decode_bit_list, decode_byte_list or this kernel.
// Fails: never.
// Oracle: native/codec/payload.cpp (tests/kernels/check_decode_kernels.py).
// Caller: tools/experiments/strategy_blocks.py.
#include "match_list.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta)
    resolve_round(unsigned char* output, const unsigned long long* output_offsets,
                  unsigned int* next_block, unsigned int num_blocks, unsigned long long* lists,
                  const unsigned int* num_listed, unsigned long long* other_lists,
                  unsigned int* num_others, unsigned long long* num_waiting) {
    using namespace gompfs;
    for (;;) {
        u32 block = 0;
        if (lane_id() == 0) {
            block = atomicAdd(next_block, 1u);
        }
        block = __shfl_sync(kAllLanes, block, 0);
        if (block >= num_blocks) {
            return;
        }
        const u64 offset = output_offsets[block];
        const u32 count = resolve_matches(output + offset, list_of(lists, offset),
                                          num_listed[block], list_of(other_lists, offset));
        if (lane_id() == 0) {
            num_others[block] = count;
            atomicAdd(num_waiting, static_cast<u64>(count));
        }
    }
}

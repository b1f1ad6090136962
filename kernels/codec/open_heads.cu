// Opens heads of parts: expands the symbols of each part, one CTA per head (head.cuh).
//
// Launch: any number of CTAs of 4 warps; the engine launches no more than the device holds at once.
// Mapping: a CTA takes heads from next_head until none is left. In a head, one warp decodes the
//   arrays (lane i sub-block i) while another one decodes the token bytes; then all warps write the
//   pool, 32 bytes at a time.
// Reads: tasks[i].payload and the global tokens that tasks[i] names (HeadTask).
// Writes: tasks[i].head (a TadocHead, its expansions and its pool), tasks[i].workspace, and
//   statuses[i]; advances next_head.
// Shared memory: kHeadBytesPerCta.
// Requires: *next_head is 0; alignment and readable padding as HeadTask says; `head` has space for
//   task.num_symbols expansions and a pool of task.pool_size bytes. The global tokens are valid:
//   the host has checked them. Payloads need not be valid.
// Fails: statuses[i] becomes kStatusBadPayload, and the content of the head is undefined, if the
//   payload is not valid, the pool has another size, the number of symbols is not task.num_symbols,
//   or the workspace is too small. A kernel never traps and never writes outside of head and
//   workspace.
// Oracle: tests/oracle/head.py and native/text/symbol_pool.cpp
//   (tests/kernels/test_decode_kernels_on_host.py, test_gpu_heads.py).
// Caller: HeadBatch.launch in gompfs/gpu/decode/head_opener.py.
#include "codec/head.cuh"
#include "codec/head_arrays.cuh"
#include "codec/head_ranks.cuh"
#include "codec/head_rules.cuh"
#include "codec/head_tokens.cuh"

namespace gompfs {

constexpr unsigned kHeadBytesPerCta = sizeof(HeadShared);

// Sets the plan. Clears the arrays of which later steps fill only some elements. Returns false in
// all threads if the fields of the head are not valid. Ends with a barrier.
__device__ inline bool prepare(const HeadTask& task, HeadShared& shared) {
    HeadPlan& plan = shared.plan;
    bool is_valid = true;
    if (threadIdx.x == 0) {
        is_valid = read_fields(task, plan) && place_arrays(task, plan);
    }
    if (any_thread(!is_valid)) {
        return false;
    }
    for (u32 rank = threadIdx.x; rank < plan.num_symbols; rank += kHeadThreads) {
        plan.expansions[rank] = 0;
    }
    for (u32 row = threadIdx.x; row < plan.max_slots / kWarpSize + 2; row += kHeadThreads) {
        plan.start_bits[row] = 0;
    }
    __syncthreads();
    return true;
}

// Opens a head. Returns false in all threads if it is not valid.
__device__ inline bool open_head(const HeadTask& task, HeadShared& shared) {
    if (!prepare(task, shared)) {
        return false;
    }
    const u32 warp = threadIdx.x / kWarpSize;
    bool is_valid = true;
    if (warp == 0) {
        is_valid = HeadArrays(task, shared).read();
    } else if (warp == 1) {
        is_valid = read_token_bytes(shared.plan, shared);
    }
    if (any_thread(!is_valid) || !rank_symbols(shared) || !place_tokens(shared)) {
        return false;
    }
    write_tokens(shared);
    return expand_rules(shared);
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kHeadThreads, gompfs::kHeadCtasPerProcessor)
    open_heads(const gompfs::HeadTask* tasks, unsigned char* statuses, unsigned int* next_head,
               unsigned int num_heads) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    HeadShared& shared = *reinterpret_cast<HeadShared*>(shared_memory);
    fill_token_classes(shared.token_classes);
    clear_starts(shared.pieces[threadIdx.x / kWarpSize]);
    for (;;) {
        __syncthreads();  // all threads have finished the head before
        if (threadIdx.x == 0) {
            shared.index = atomicAdd(next_head, 1u);
        }
        __syncthreads();
        const u32 index = shared.index;
        if (index >= num_heads) {
            return;
        }
        const bool is_valid = open_head(tasks[index], shared);
        if (threadIdx.x == 0) {
            statuses[index] = is_valid ? kStatusOk : kStatusBadPayload;
        }
    }
}

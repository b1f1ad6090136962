// Decodes blocks of gompresso-tadoc, one warp per block (tadoc_block.cuh).
//
// Launch: any number of CTAs of 1 to 4 warps; the engine launches no more CTAs of 4 warps than the
//   device holds at once.
// Mapping: a warp takes blocks from next_block until none is left. In a block, lane i decodes
//   sub-block i; then lane i copies byte i of each 32 bytes.
// Reads: payload i of payload_sizes[i] bytes at compressed + payload_offsets[i], and the head of
// its
//   part at address heads[i] (TadocHead). Blocks of one part should be adjacent: a warp loads the
//   class code again when the head changes.
// Writes: output_sizes[i] bytes at output + output_offsets[i], and statuses[i]; advances
//   next_block.
// Shared memory: kTadocBytesPerWarp for each warp of the CTA.
// Requires: *next_block is 0; alignment and readable padding as batch.cuh says. Heads are valid:
//   the host has opened them. Payloads need not be valid.
// Fails: statuses[i] becomes kStatusBadPayload for a payload that is not valid; the content of its
//   output is then undefined. A kernel never traps and never writes outside the outputs.
// Oracle: tests/oracle/tadoc.py and native/codec/tadoc_decoder.cpp
//   (tests/kernels/test_decode_kernels_on_host.py, test_gpu_tadoc.py).
// Caller: Device.launch in gompfs/gpu/decode/device.py.
#include "codec/tadoc_block.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta, gompfs::kTadocCtasPerProcessor)
    decode_tadoc(const unsigned char* compressed, const unsigned long long* payload_offsets,
                 const unsigned int* payload_sizes, unsigned char* output,
                 const unsigned long long* output_offsets, const unsigned int* output_sizes,
                 unsigned char* statuses, unsigned int* next_block, const unsigned long long* heads,
                 unsigned int num_blocks) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TadocShared& shared = reinterpret_cast<TadocShared*>(shared_memory)[threadIdx.x / kWarpSize];
    clear_starts(shared.pieces);
    const GpuBatch batch{compressed,   payload_offsets, payload_sizes, output,    output_offsets,
                         output_sizes, statuses,        next_block,    num_blocks};
    const TadocHead* loaded = nullptr;
    for_each_block(batch, [&](const BlockTask& task) {
        const TadocHead* const head = reinterpret_cast<const TadocHead*>(heads[task.index]);
        if (head != loaded) {
            load_code(*head, shared.code);
            loaded = head;
        }
        return decode_tadoc_block(task, *head, shared);
    });
}

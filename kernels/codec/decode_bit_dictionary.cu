// Decodes blocks of gompresso-bit-dictionary, one warp per block (bit_block.cuh).
//
// Launch, mapping, writes, shared memory, failures: as decode_bit.cu.
// Reads: payload i of payload_sizes[i] bytes at compressed + payload_offsets[i], and the
//   dictionary of block i at address dictionaries[i] (GpuDictionary in dictionary_rows.cuh).
// Requires: *next_block is 0; alignment and readable padding as batch.cuh and dictionary_rows.cuh
//   say. Payloads need not be valid.
// Oracle: tests/oracle/bit.py and native/codec/bit_decoder.cpp
//   (tests/kernels/test_decode_kernels_on_host.py, test_gpu_dictionary.py).
// Caller: Device.launch in gompfs/gpu/decode/device.py.
#include "codec/bit_block.cuh"
#include "codec/dictionary_rows.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kThreadsPerCta, gompfs::kCtasPerProcessor)
    decode_bit_dictionary(const unsigned char* compressed,
                          const unsigned long long* payload_offsets,
                          const unsigned int* payload_sizes, unsigned char* output,
                          const unsigned long long* output_offsets,
                          const unsigned int* output_sizes, unsigned char* statuses,
                          unsigned int* next_block, const unsigned long long* dictionaries,
                          unsigned int num_blocks) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TokenClass* const classes = reinterpret_cast<TokenClass*>(shared_memory);
    BitShared& shared =
        reinterpret_cast<BitShared*>(classes + kNumTokenSymbols)[threadIdx.x / kWarpSize];
    fill_token_classes(classes);
    const GpuBatch batch{compressed,   payload_offsets, payload_sizes, output,    output_offsets,
                         output_sizes, statuses,        next_block,    num_blocks};
    for_each_block(batch, [&](const BlockTask& task) {
        const GpuDictionary& dictionary =
            *reinterpret_cast<const GpuDictionary*>(dictionaries[task.index]);
        DictionaryRows rows{shared.row, {dictionary, task.output}};
        return decode_bit_block<true>(task, shared, classes, rows);
    });
}

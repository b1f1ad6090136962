// Compares encoded blocks, after they were decoded again, with their content (check_blocks), and
// moves payloads together (gather_payloads).
//
// Launch: a CTA of any number of threads per block.
// Mapping: the threads of a CTA share the 16-byte words of a block.
// Reads: check_blocks: the content and the decoded bytes of block i at i * block_size, payload
//   sizes, and the statuses of the decoder (codec/batch.cuh). gather_payloads: payload i at i *
//   stride.
// Writes: check_blocks: for a block that differs, statuses[i] becomes kEncodeFailed and
//   payload_sizes[i] becomes 0. gather_payloads: payload i at packed + offsets[i], up to the next
//   multiple of 16.
// Shared memory: none.
// Requires: block_size, stride and offsets are multiples of 16.
// Fails: never.
// Oracle: tests/kernels/encode_cases.py.
// Caller: gompfs/gpu/encode/encode_kernels.py.
#include "encode/batch.cuh"

namespace gompfs {

__device__ inline bool differs(uint4 left, uint4 right) {
    return ((left.x ^ right.x) | (left.y ^ right.y) | (left.z ^ right.z) | (left.w ^ right.w)) != 0;
}

}  // namespace gompfs

extern "C" __global__ void check_blocks(const unsigned char* content,
                                        unsigned long long content_size,
                                        const unsigned char* decoded,
                                        const unsigned char* decode_statuses,
                                        unsigned int* payload_sizes, unsigned char* statuses,
                                        unsigned int block_size) {
    using namespace gompfs;
    const u32 block = blockIdx.x;
    if (payload_sizes[block] == 0) {
        return;
    }
    const u64 start = static_cast<u64>(block) * block_size;
    const u32 size = static_cast<u32>(min(content_size - start, static_cast<u64>(block_size)));
    const uint4* const ours = reinterpret_cast<const uint4*>(content + start);
    const uint4* const theirs = reinterpret_cast<const uint4*>(decoded + start);
    bool is_wrong = decode_statuses[block] != 0;
    for (u32 word = threadIdx.x; word < size / 16; word += blockDim.x) {
        is_wrong |= differs(ours[word], theirs[word]);
    }
    for (u32 byte = size / 16 * 16 + threadIdx.x; byte < size; byte += blockDim.x) {
        is_wrong |= content[start + byte] != decoded[start + byte];
    }
    if (__syncthreads_or(is_wrong) && threadIdx.x == 0) {
        payload_sizes[block] = 0;
        statuses[block] = kEncodeFailed;
    }
}

extern "C" __global__ void gather_payloads(const unsigned char* payloads,
                                           const unsigned int* payload_sizes,
                                           const unsigned long long* offsets, unsigned char* packed,
                                           unsigned int stride) {
    using namespace gompfs;
    const u64 block = blockIdx.x;
    const u32 num_words = (payload_sizes[block] + 15) / 16;
    const uint4* const from = reinterpret_cast<const uint4*>(payloads + block * stride);
    uint4* const to = reinterpret_cast<uint4*>(packed + offsets[block]);
    for (u32 word = threadIdx.x; word < num_words; word += blockDim.x) {
        to[word] = from[word];
    }
}

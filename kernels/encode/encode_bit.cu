// Encodes blocks as payloads of gompresso-bit (bit_payload.cuh).
//
// Launch: a CTA of kEncodeThreads threads per block.
// Mapping: a warp takes a contiguous range of rows of 32 sequences, and of 32 literals; lane i
//   takes the items of sub-block i.
// Reads: the content of block i, its sequences and their number, see EncodeBatch.
// Writes: the payload of block i at payloads + i * stride, payload_sizes[i] (0 if the payload would
//   not be smaller than the content) and statuses[i]; up to 3 bytes after a payload. `literals` is
//   working memory of content_size bytes.
// Shared memory: kEncodeBitBytes.
// Requires: alignment as EncodeBatch says; stride is not less than block_size; num_sequences[i] is
//   at most max_sequences; no length or offset above the limits of the format.
// Fails: statuses[i] becomes kEncodeFailed if the sequences do not have the size of the content.
// Oracle: native/codec/bit_encoder.cpp (tests/kernels/encode_cases.py).
// Caller: gompfs/gpu/encode/encode_kernels.py.
#include "encode/bit_payload.cuh"

extern "C" __global__ void __launch_bounds__(gompfs::kEncodeThreads, gompfs::kEncodeCtas)
    encode_bit(const unsigned char* content, unsigned long long content_size,
               const unsigned long long* sequences, const unsigned int* num_sequences,
               unsigned char* payloads, unsigned int* payload_sizes, unsigned char* statuses,
               unsigned char* literals, unsigned int block_size, unsigned int max_sequences,
               unsigned int stride, unsigned int flags) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const EncodeBatch batch{content,    content_size,  sequences, num_sequences,
                            payloads,   payload_sizes, statuses,  literals,
                            block_size, max_sequences, stride,    flags};
    encode_bit_block(batch, *reinterpret_cast<BitEncodeShared*>(shared_memory));
}

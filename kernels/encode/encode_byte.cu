// Encodes blocks as payloads of gompresso-byte.
//
// Launch: a CTA of kEncodeThreads threads per block.
// Mapping: a warp takes a contiguous range of rows of 32 sequences; lane i takes sequence i of each
//   row, and every 32nd literal of it.
// Reads: the content of block i, its sequences and their number, see EncodeBatch.
// Writes: the payload of block i at payloads + i * stride, payload_sizes[i] (0 if the payload would
//   not be smaller than the content) and statuses[i].
// Shared memory: kEncodeByteBytes.
// Requires: alignment as EncodeBatch says; stride is not less than block_size; num_sequences[i] is
//   at most max_sequences; no length or offset above the limits of the format.
// Fails: statuses[i] becomes kEncodeFailed if the sequences do not have the size of the content.
// Oracle: native/codec/byte_codec.cpp (tests/kernels/encode_cases.py).
// Caller: gompfs/gpu/encode/encode_kernels.py.
#include "encode/batch.cuh"
#include "shared/format_constants.h"

namespace gompfs {

constexpr unsigned kEncodeByteBytes = kEncodeWarps * sizeof(u32);

__device__ inline u32 match_code(const UnpackedSequence& sequence) {
    return sequence.match_length == 0 ? 0 : sequence.match_length - kByteMinMatchLength + 1;
}

__device__ inline bool extends_literals(const UnpackedSequence& sequence) {
    return sequence.literal_length >= kByteLiteralEscape;
}

__device__ inline bool extends_match(const UnpackedSequence& sequence) {
    return match_code(sequence) >= kByteMatchEscape;
}

// The offsets of the streams of a payload.
struct StreamStarts {
    u8* offsets;
    u8* tokens;
    u8* extensions;
    u8* literals;
};

// Writes the token, the offset and the extensions of a sequence.
__device__ inline void write_sequence(const UnpackedSequence& sequence, u32 index, u32 extension,
                                      const StreamStarts& out) {
    const u32 code = match_code(sequence);
    const u32 literal_field = min(sequence.literal_length, static_cast<u32>(kByteLiteralEscape));
    const u32 match_field = min(code, static_cast<u32>(kByteMatchEscape));
    out.tokens[index] = static_cast<u8>(literal_field | match_field << kByteMatchShift);
    out.offsets[2 * index] = static_cast<u8>(sequence.match_offset);
    out.offsets[2 * index + 1] = static_cast<u8>(sequence.match_offset >> 8);
    if (extends_literals(sequence)) {
        out.extensions[extension++] = static_cast<u8>(sequence.literal_length - kByteLiteralEscape);
    }
    if (extends_match(sequence)) {
        out.extensions[extension] = static_cast<u8>(code - kByteMatchEscape);
    }
}

// Writes the streams. `extension` is the number of extensions before the sequences of this warp.
__device__ inline void write_streams(const EncodeTask& task, WarpStart at, u32 extension,
                                     const StreamStarts& out) {
    const ItemRange range = range_of_warp(task.num_sequences);
    u32 index = range.first + lane_id();
    for_each_row(task.sequences, range, [&](u64 packed, bool exists) {
        const UnpackedSequence sequence = unpack_sequence(packed);
        const u32 own = extends_literals(sequence) + extends_match(sequence);
        const u32 through = inclusive_sum(own, lane_id());
        if (exists) {
            write_sequence(sequence, index, extension + through - own, out);
        }
        index += kWarpSize;
        extension += __shfl_sync(kAllLanes, through, kWarpSize - 1);
        for_each_literal(task.content, sequence, at,
                         [&](u32 literal, u8 byte) { out.literals[literal] = byte; });
    });
}

// Encodes the block of this CTA. Returns the size of its payload, or 0 if that would not be smaller
// than the content.
__device__ inline u32 encode_byte_block(const EncodeBatch& batch, const EncodeTask& task,
                                        const WarpStart& start, u32* scratch) {
    u32 own = 0;
    for_each_row(task.sequences, range_of_warp(task.num_sequences), [&](u64 packed, bool) {
        own += extends_literals(unpack_sequence(packed)) + extends_match(unpack_sequence(packed));
    });
    const WarpSums extensions = sum_over_warps(own, scratch);
    const u32 size = kByteHeaderSize + 3 * task.num_sequences + extensions.all + start.num_literals;
    if (size >= task.size) {
        return 0;
    }
    if (threadIdx.x == 0) {
        u32* const header = reinterpret_cast<u32*>(task.payload);
        header[0] = batch.flags;
        header[1] = task.num_sequences;
        header[2] = extensions.all;
        header[3] = start.num_literals;
    }
    StreamStarts out;
    out.offsets = task.payload + kByteHeaderSize;
    out.tokens = out.offsets + 2 * task.num_sequences;
    out.extensions = out.tokens + task.num_sequences;
    out.literals = out.extensions + extensions.all;
    write_streams(task, start, extensions.before, out);
    return size;
}

}  // namespace gompfs

extern "C" __global__ void __launch_bounds__(gompfs::kEncodeThreads, gompfs::kEncodeCtas)
    encode_byte(const unsigned char* content, unsigned long long content_size,
                const unsigned long long* sequences, const unsigned int* num_sequences,
                unsigned char* payloads, unsigned int* payload_sizes, unsigned char* statuses,
                unsigned int block_size, unsigned int max_sequences, unsigned int stride,
                unsigned int flags) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    u32* const scratch = reinterpret_cast<u32*>(shared_memory);
    const EncodeBatch batch{content,    content_size,  sequences, num_sequences,
                            payloads,   payload_sizes, statuses,  nullptr,
                            block_size, max_sequences, stride,    flags};
    const EncodeTask task = task_of_cta(batch);
    const WarpStart start = find_start(task, scratch);
    const u32 size = start.is_sound ? encode_byte_block(batch, task, start, scratch) : 0;
    if (threadIdx.x == 0) {
        finish_block(batch, task.index, size, start.is_sound ? kEncodeOk : kEncodeFailed);
    }
}

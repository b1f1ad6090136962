// A block of gompresso-byte, decoded by one warp.
//
// Lane i of a warp holds sequence i of each row of 32: tokens and offsets are read at its index,
// extensions at an index that ballots give. Shared memory: what write_row needs, for each warp.
#pragma once

#include "batch.cuh"
#include "format_constants.h"
#include "row.cuh"
#include "warp.cuh"

namespace gompfs {

struct ByteStreams {
    u32 num_sequences;
    const u16* offsets;
    const u8* tokens;
    const u8* extensions;
    const u8* extensions_end;
    const u8* literals;
    u32 num_literals;
};

__device__ inline bool split_streams(const BlockTask& task, ByteStreams& streams) {
    if (task.payload_size < kByteHeaderSize) {
        return false;
    }
    const u32* header = reinterpret_cast<const u32*>(task.payload);
    const u32 fixed = header[0];
    const u64 num_sequences = header[1], num_extensions = header[2], num_literals = header[3];
    const u32 group_size_log2 = fixed >> 8 & 255;
    if ((fixed & 255) > kFlagDependencyElimination || group_size_log2 < kMinGroupSizeLog2 ||
        group_size_log2 > kMaxGroupSizeLog2 || fixed >> 16 != 0 ||
        kByteHeaderSize + 3 * num_sequences + num_extensions + num_literals != task.payload_size) {
        return false;
    }
    streams.num_sequences = static_cast<u32>(num_sequences);
    streams.offsets = reinterpret_cast<const u16*>(task.payload + kByteHeaderSize);
    streams.tokens = task.payload + kByteHeaderSize + 2 * num_sequences;
    streams.extensions = streams.tokens + num_sequences;
    streams.extensions_end = streams.extensions + num_extensions;
    streams.literals = streams.extensions_end;
    streams.num_literals = static_cast<u32>(num_literals);
    return true;
}

// What lies at a sequence's index.
struct TokenAndOffset {
    u32 token;
    u32 offset;
};

__device__ inline TokenAndOffset load_sequence(const ByteStreams& in, u32 index) {
    const bool exists = index < in.num_sequences;
    return {exists ? in.tokens[index] : 0u, exists ? in.offsets[index] : 0u};
}

// The sequence of this lane in a row; false in all lanes where the extensions are too few.
__device__ inline bool read_sequence(ByteStreams& in, const TokenAndOffset& loaded,
                                     LaneSequence& sequence) {
    const int lane = lane_id();
    const u32 token = loaded.token;
    sequence.match_offset = loaded.offset;
    u32 literal_length = token & kByteLiteralEscape;
    u32 match_code = token >> kByteMatchShift;
    const u32 long_literals = __ballot_sync(kAllLanes, literal_length == kByteLiteralEscape);
    const u32 long_matches = __ballot_sync(kAllLanes, match_code == kByteMatchEscape);
    const int num_extensions = __popc(long_literals) + __popc(long_matches);
    if (num_extensions > in.extensions_end - in.extensions) {
        return false;
    }
    const u32 below = lanes_below(lane);
    const u8* extension =
        in.extensions + __popc(long_literals & below) + __popc(long_matches & below);
    if (literal_length == kByteLiteralEscape) {
        literal_length += *extension++;
    }
    if (match_code == kByteMatchEscape) {
        match_code += *extension;
    }
    in.extensions += num_extensions;
    sequence.literal_length = literal_length;
    sequence.match_length = match_code == 0 ? 0 : match_code + kByteMinMatchLength - 1;
    // A sequence without a match must have no offset either.
    return __all_sync(kAllLanes, match_code != 0 || sequence.match_offset == 0);
}

// Copies all literals; each lane has four loads under way.
__device__ inline void copy_literals(const ByteStreams& in, u8* target) {
    for (u32 first = lane_id(); first < in.num_literals; first += 4 * kWarpSize) {
        u8 bytes[4];
#pragma unroll
        for (u32 part = 0; part < 4; ++part) {
            const u32 index = first + part * kWarpSize;
            bytes[part] = index < in.num_literals ? in.literals[index] : 0;
        }
#pragma unroll
        for (u32 part = 0; part < 4; ++part) {
            const u32 index = first + part * kWarpSize;
            if (index < in.num_literals) {
                target[index] = bytes[part];
            }
        }
    }
    __syncwarp();
}

// Decodes one block; write_row(out, sequence) makes the bytes of a row.
template <class WriteRow>
__device__ inline bool decode_byte_block(const BlockTask& task, WriteRow&& write_row) {
    ByteStreams in;
    if (!split_streams(task, in) || in.num_literals > task.output_size) {
        return false;
    }
    BlockOutput out{task.output, task.output_size};
    out.num_literals = in.num_literals;
    copy_literals(in, out.bytes + out.size - in.num_literals);
    TokenAndOffset next = load_sequence(in, lane_id());
    for (u32 first = 0; first < in.num_sequences; first += kWarpSize) {
        const TokenAndOffset loaded = next;
        next = load_sequence(in, first + kWarpSize + lane_id());  // while this row is written
        LaneSequence sequence;
        if (!read_sequence(in, loaded, sequence) || !write_row(out, sequence)) {
            return false;
        }
    }
    return out.position == out.size && out.num_literals == 0 && in.extensions == in.extensions_end;
}

// Dynamic shared memory, in bytes.
constexpr unsigned kByteBytesPerWarp = sizeof(RowShared);

}  // namespace gompfs

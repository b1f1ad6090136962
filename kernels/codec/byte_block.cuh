// Decodes one block of gompresso-byte with one warp (Gompresso/Byte; Sitaridi et al., ICPP 2016,
// section IV).
//
// Sequences are decoded in rows of 32; lane i decodes sequence i of a row. The payload stores
// tokens and match offsets in arrays, so a lane reads them at the sequence's index. Length
// extensions exist only for long lengths; ballots over the warp give the index of each lane's
// extension. The literals are copied to the end of the output, and write() of the rows (row.cuh)
// then produces the bytes of the block.
//
// Every length and count of the payload is checked before use; a payload that is not valid makes
// the functions return false in all lanes. Shared memory: one RowShared per warp.
#pragma once

#include "codec/batch.cuh"
#include "codec/row.cuh"
#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

// The streams of a payload. The indexes of extensions and literals count from the payload's start.
struct ByteStreams {
    const u8* payload;
    const u16* offsets;
    const u8* tokens;
    u32 num_sequences;
    u32 num_literals;
    u32 extension;       // index of the next extension
    u32 extensions_end;  // index after the last extension, where the literals begin
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
    streams.payload = task.payload;
    streams.offsets = reinterpret_cast<const u16*>(task.payload + kByteHeaderSize);
    streams.tokens = task.payload + kByteHeaderSize + 2 * num_sequences;
    streams.num_sequences = static_cast<u32>(num_sequences);
    streams.num_literals = static_cast<u32>(num_literals);
    streams.extensions_end = task.payload_size - streams.num_literals;
    streams.extension = streams.extensions_end - static_cast<u32>(num_extensions);
    return true;
}

// The token and the match offset of one sequence, as stored in the payload.
struct TokenAndOffset {
    u32 token;
    u32 offset;
};

__device__ inline TokenAndOffset load_sequence(const ByteStreams& in, u32 index) {
    const bool exists = index < in.num_sequences;
    return {exists ? in.tokens[index] : 0u, exists ? in.offsets[index] : 0u};
}

__device__ inline bool has_long_literals(u32 token) {
    return (token & kByteLiteralEscape) == kByteLiteralEscape;
}

__device__ inline bool has_long_match(u32 token) {
    return token >> kByteMatchShift == kByteMatchEscape;
}

// A sequence that the block cannot hold: its match leads before the start of any block.
__device__ inline LaneSequence bad_sequence() { return {0, 1, kMaxBlockSize}; }

// Returns a sequence whose extensions, if it has any, begin at index `extension` of the payload.
__device__ inline LaneSequence make_sequence(const ByteStreams& in, const TokenAndOffset& loaded,
                                             u32 extension) {
    u32 literal_length = loaded.token & kByteLiteralEscape;
    u32 match_code = loaded.token >> kByteMatchShift;
    if (has_long_literals(loaded.token)) {
        literal_length += in.payload[extension++];
    }
    if (has_long_match(loaded.token)) {
        match_code += in.payload[extension];
    }
    if (match_code == 0 && loaded.offset != 0) {
        return bad_sequence();
    }
    return {literal_length, match_code == 0 ? 0 : match_code + kByteMinMatchLength - 1,
            loaded.offset};
}

// Decodes this lane's sequence of a row. If it is not valid, returns bad_sequence().
__device__ inline LaneSequence read_sequence(ByteStreams& in, const TokenAndOffset& loaded) {
    const u32 below = lanes_below(lane_id());
    const u32 long_literals = __ballot_sync(kAllLanes, has_long_literals(loaded.token));
    const u32 long_matches = __ballot_sync(kAllLanes, has_long_match(loaded.token));
    const u32 extension =
        in.extension + __popc(long_literals & below) + __popc(long_matches & below);
    in.extension += __popc(long_literals) + __popc(long_matches);
    const LaneSequence sequence = make_sequence(in, loaded, extension);
    return in.extension > in.extensions_end ? bad_sequence() : sequence;
}

// Copies all literals to target. Each lane has four loads in flight.
__device__ inline void copy_literals(const ByteStreams& in, u8* target) {
    const u8* const literals = in.payload + in.extensions_end;
    for (u32 first = lane_id(); first < in.num_literals; first += 4 * kWarpSize) {
        u8 bytes[4];
#pragma unroll
        for (u32 part = 0; part < 4; ++part) {
            const u32 index = first + part * kWarpSize;
            bytes[part] = index < in.num_literals ? literals[index] : 0;
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

// Decodes one block. `rows` writes the output (for example PieceRows).
template <class Rows>
__device__ inline bool decode_byte_block(const BlockTask& task, Rows& rows) {
    ByteStreams in;
    if (!split_streams(task, in) || in.num_literals > task.output_size) {
        return false;
    }
    BlockOutput out{task.output, task.output_size};
    out.num_literals = in.num_literals;
    copy_literals(in, out.bytes + out.size - in.num_literals);
    rows.begin();
    TokenAndOffset next = load_sequence(in, lane_id());
    for (u32 first = 0; first < in.num_sequences; first += kWarpSize) {
        const TokenAndOffset loaded = next;
        next = load_sequence(in, first + kWarpSize + lane_id());  // while this row is written
        if (!rows.write(out, read_sequence(in, loaded))) {
            return false;
        }
    }
    return out.position == out.size && out.num_literals == 0 && in.extension == in.extensions_end;
}

// Dynamic shared memory per warp, in bytes.
constexpr unsigned kByteBytesPerWarp = sizeof(RowShared);

}  // namespace gompfs

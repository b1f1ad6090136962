// Payload: a header of 16 bytes, then the streams match_offsets (u16), tokens (u8), extensions (u8) and
// literals (u8). A token holds literal_length, the repeat flag and the match code; lengths that do not
// fit continue in one byte of extensions. Everything that a lane of a warp reads lies at an index that
// it gets from ballots: no lane waits for another's parsing.
#include "codec/byte_codec.h"

#include <algorithm>

#include "codec/little_endian.h"
#include "format_constants.h"

namespace gompfs {
namespace {

// Room that the fast path needs behind the output and literal positions: its copies overrun.
constexpr std::size_t kOutputMargin = 32;
constexpr std::size_t kLiteralMargin = 8;

struct Streams {
    std::uint32_t num_sequences;
    int group_size_log2;
    const std::uint8_t* offsets;
    const std::uint8_t* offsets_end;
    const std::uint8_t* tokens;
    const std::uint8_t* extensions;
    const std::uint8_t* extensions_end;
    const std::uint8_t* literals;
    const std::uint8_t* literals_end;
};

bool split_streams(Bytes payload, Streams& streams) {
    if (payload.size() < kByteHeaderSize) {
        return false;
    }
    const std::uint8_t* header = payload.data();
    const std::uint64_t num_sequences = load<std::uint32_t>(header + 4);
    const std::uint64_t num_offsets = load<std::uint32_t>(header + 8);
    const std::uint64_t num_extensions = load<std::uint32_t>(header + 12);
    streams.group_size_log2 = header[1];
    if (header[0] > kFlagDependencyElimination || header[2] != 0 || header[3] != 0 ||
        streams.group_size_log2 < kMinGroupSizeLog2 || streams.group_size_log2 > kMaxGroupSizeLog2 ||
        kByteHeaderSize + 2 * num_offsets + num_sequences + num_extensions > payload.size()) {
        return false;
    }
    streams.num_sequences = static_cast<std::uint32_t>(num_sequences);
    streams.offsets = header + kByteHeaderSize;
    streams.offsets_end = streams.offsets + 2 * num_offsets;
    streams.tokens = streams.offsets_end;
    streams.extensions = streams.tokens + num_sequences;
    streams.extensions_end = streams.extensions + num_extensions;
    streams.literals = streams.extensions_end;
    streams.literals_end = header + payload.size();
    return true;
}

// Decodes one sequence with every bound checked. False for anything invalid.
bool decode_sequence_checked(std::uint8_t token, Streams& in, std::uint32_t& last_offset,
                             const std::uint8_t* output_start, std::uint8_t*& output,
                             const std::uint8_t* output_end) {
    std::uint32_t literal_length = token & kByteLiteralEscape;
    std::uint32_t match_code = token >> kByteMatchShift;
    if (literal_length == kByteLiteralEscape) {
        if (in.extensions == in.extensions_end) {
            return false;
        }
        literal_length += *in.extensions++;
    }
    if (match_code == kByteMatchEscape) {
        if (in.extensions == in.extensions_end) {
            return false;
        }
        match_code += *in.extensions++;
    }
    if (literal_length > static_cast<std::size_t>(in.literals_end - in.literals) ||
        literal_length > static_cast<std::size_t>(output_end - output)) {
        return false;
    }
    std::copy_n(in.literals, literal_length, output);
    in.literals += literal_length;
    output += literal_length;
    if (match_code == 0) {
        return (token & kByteRepeatFlag) == 0;
    }
    if ((token & kByteRepeatFlag) == 0) {
        if (in.offsets == in.offsets_end) {
            return false;
        }
        last_offset = load<std::uint16_t>(in.offsets);
        in.offsets += 2;
    }
    const std::uint32_t match_length = match_code + kMinMatchLength - 1;
    if (last_offset == 0 || last_offset > static_cast<std::size_t>(output - output_start) ||
        match_length > static_cast<std::size_t>(output_end - output)) {
        return false;
    }
    copy_overlapping(output, last_offset, match_length);
    output += match_length;
    return true;
}

}  // namespace

ParserLimits byte_parser_limits(bool dependency_elimination) {
    return {kByteMaxLiteralLength, kByteMaxMatchLength, kByteMaxMatchOffset, 4, dependency_elimination, false};
}

std::vector<std::uint8_t> encode_byte(Bytes content, const std::vector<Sequence>& sequences,
                                      const ParserLimits& limits) {
    std::vector<std::uint8_t> offsets, tokens, extensions, literals;
    const std::uint32_t group_mask = (1u << limits.group_size_log2) - 1;
    std::uint32_t last_offset = 0;
    std::size_t position = 0;
    for (std::size_t index = 0; index < sequences.size(); ++index) {
        const Sequence& sequence = sequences[index];
        last_offset = (index & group_mask) == 0 ? 0 : last_offset;
        const std::uint32_t match_code =
            sequence.match_length == 0 ? 0 : sequence.match_length - kMinMatchLength + 1;
        const bool repeat = match_code != 0 && sequence.match_offset == last_offset;
        const std::uint32_t literal_field = std::min<std::uint32_t>(sequence.literal_length, kByteLiteralEscape);
        const std::uint32_t match_field = std::min<std::uint32_t>(match_code, kByteMatchEscape);
        tokens.push_back(static_cast<std::uint8_t>(literal_field | (repeat ? kByteRepeatFlag : 0) |
                                                   match_field << kByteMatchShift));
        if (literal_field == kByteLiteralEscape) {
            extensions.push_back(static_cast<std::uint8_t>(sequence.literal_length - kByteLiteralEscape));
        }
        if (match_field == kByteMatchEscape) {
            extensions.push_back(static_cast<std::uint8_t>(match_code - kByteMatchEscape));
        }
        if (match_code != 0 && !repeat) {
            append(offsets, static_cast<std::uint16_t>(sequence.match_offset));
            last_offset = sequence.match_offset;
        }
        literals.insert(literals.end(), content.begin() + position,
                        content.begin() + position + sequence.literal_length);
        position += sequence.literal_length + sequence.match_length;
    }
    std::vector<std::uint8_t> payload;
    payload.reserve(kByteHeaderSize + offsets.size() + tokens.size() + extensions.size() + literals.size());
    payload.push_back(limits.dependency_elimination ? kFlagDependencyElimination : 0);
    payload.push_back(static_cast<std::uint8_t>(limits.group_size_log2));
    append(payload, std::uint16_t{0});
    append(payload, static_cast<std::uint32_t>(sequences.size()));
    append(payload, static_cast<std::uint32_t>(offsets.size() / 2));
    append(payload, static_cast<std::uint32_t>(extensions.size()));
    for (const auto* stream : {&offsets, &tokens, &extensions, &literals}) {
        payload.insert(payload.end(), stream->begin(), stream->end());
    }
    return payload;
}

bool decode_byte(Bytes payload, MutableBytes content) {
    Streams in;
    if (!split_streams(payload, in)) {
        return false;
    }
    std::uint8_t* output = content.data();
    const std::uint8_t* const output_start = output;
    const std::uint8_t* const output_end = output + content.size();
    const std::uint8_t* const fast_output_end = output_end - std::min(content.size(), kOutputMargin);
    const auto num_literals = static_cast<std::size_t>(in.literals_end - in.literals);
    const std::uint8_t* const fast_literals_end = in.literals_end - std::min(num_literals, kLiteralMargin);
    const std::uint32_t group_size = 1u << in.group_size_log2;
    for (std::uint32_t first = 0; first < in.num_sequences; first += group_size) {
        std::uint32_t last_offset = 0;
        const std::uint32_t count = std::min(group_size, in.num_sequences - first);
        for (std::uint32_t index = first; index < first + count; ++index) {
            const std::uint8_t token = in.tokens[index];
            const std::uint32_t literal_length = token & kByteLiteralEscape;
            const std::uint32_t match_code = token >> kByteMatchShift;
            const bool repeat = (token & kByteRepeatFlag) != 0;
            if (literal_length < kByteLiteralEscape && match_code - 1 < kByteMatchEscape - 1 &&
                output < fast_output_end && in.literals <= fast_literals_end &&
                in.offsets + 2 <= in.offsets_end) {
                const std::uint32_t next_offset = load<std::uint16_t>(in.offsets);
                const std::uint32_t offset = repeat ? last_offset : next_offset;
                const std::uint32_t match_length = match_code + kMinMatchLength - 1;
                std::uint8_t* const match = output + literal_length;
                if (offset >= match_length && offset <= static_cast<std::size_t>(match - output_start)) {
                    copy_fixed<8>(output, in.literals);
                    copy_fixed<16>(match, match - offset);
                    in.literals += literal_length;
                    in.offsets += repeat ? 0 : 2;
                    last_offset = offset;
                    output = match + match_length;
                    continue;
                }
            }
            if (!decode_sequence_checked(token, in, last_offset, output_start, output, output_end)) {
                return false;
            }
        }
    }
    return output == output_end && in.literals == in.literals_end && in.offsets == in.offsets_end &&
           in.extensions == in.extensions_end;
}

}  // namespace gompfs

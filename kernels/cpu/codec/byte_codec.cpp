// Payload: a header of 16 bytes, then the streams match_offsets (u16), tokens (u8), extensions (u8)
// and literals (u8). A token holds literal_length and the match code; lengths that do not fit
// continue in one byte of extensions. The token and the offset of sequence i lie at index i, and
// what else a lane of a warp reads at an index that ballots give: no lane waits for another's
// parsing.
#include "codec/byte_codec.h"

#include <algorithm>

#include "codec/copy.h"
#include "common/little_endian.h"
#include "format_constants.h"

namespace gompfs {
namespace {

struct Streams {
    std::uint32_t num_sequences;
    const std::uint8_t* offsets;
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
    const std::uint64_t num_extensions = load<std::uint32_t>(header + 8);
    const std::uint64_t num_literals = load<std::uint32_t>(header + 12);
    if (header[0] > kFlagDependencyElimination || header[1] < kMinGroupSizeLog2 ||
        header[1] > kMaxGroupSizeLog2 || header[2] != 0 || header[3] != 0 ||
        kByteHeaderSize + 3 * num_sequences + num_extensions + num_literals != payload.size()) {
        return false;
    }
    streams.num_sequences = static_cast<std::uint32_t>(num_sequences);
    streams.offsets = header + kByteHeaderSize;
    streams.tokens = streams.offsets + 2 * num_sequences;
    streams.extensions = streams.tokens + num_sequences;
    streams.extensions_end = streams.literals = streams.extensions + num_extensions;
    streams.literals_end = header + payload.size();
    return true;
}

// Where decoding stands in the output; everything else stands in Streams.
struct Output {
    const std::uint8_t* start;
    std::uint8_t* next;
    const std::uint8_t* end;
};

// Decodes one sequence with every bound checked. False for anything invalid.
[[gnu::noinline]] bool decode_sequence_checked(std::uint32_t index, Streams& in, Output& out) {
    const std::uint8_t token = in.tokens[index];
    std::size_t literal_length = token & kByteLiteralEscape;
    std::size_t match_code = token >> kByteMatchShift;
    for (auto [length, escape] :
         {std::pair{&literal_length, kByteLiteralEscape}, {&match_code, kByteMatchEscape}}) {
        if (*length == static_cast<std::size_t>(escape)) {
            if (in.extensions == in.extensions_end) {
                return false;
            }
            *length += *in.extensions++;
        }
    }
    const std::size_t match_length = match_code == 0 ? 0 : match_code + kByteMinMatchLength - 1;
    if (literal_length > static_cast<std::size_t>(in.literals_end - in.literals) ||
        literal_length + match_length > static_cast<std::size_t>(out.end - out.next)) {
        return false;
    }
    std::copy_n(in.literals, literal_length, out.next);
    in.literals += literal_length;
    out.next += literal_length;
    const std::uint32_t offset = load<std::uint16_t>(in.offsets + 2 * std::size_t{index});
    if (match_length == 0) {
        return offset == 0;
    }
    if (offset == 0 || offset > static_cast<std::size_t>(out.next - out.start)) {
        return false;
    }
    copy_match(out.next, offset, match_length);
    out.next += match_length;
    return true;
}

}  // namespace

ParserLimits byte_parser_limits(bool dependency_elimination) {
    return {kByteMinMatchLength,
            kByteMaxLiteralLength,
            kByteMaxMatchLength,
            kByteMaxMatchOffset,
            kDefaultGroupSizeLog2,
            dependency_elimination,
            false};
}

std::vector<std::uint8_t> encode_byte(Bytes content, const std::vector<Sequence>& sequences,
                                      const ParserLimits& limits) {
    std::vector<std::uint8_t> offsets, tokens, extensions, literals;
    std::size_t position = 0;
    for (const Sequence& sequence : sequences) {
        const std::uint32_t match_code =
            sequence.match_length == 0 ? 0 : sequence.match_length - kByteMinMatchLength + 1;
        const std::uint32_t literal_field =
            std::min<std::uint32_t>(sequence.literal_length, kByteLiteralEscape);
        const std::uint32_t match_field = std::min<std::uint32_t>(match_code, kByteMatchEscape);
        tokens.push_back(static_cast<std::uint8_t>(literal_field | match_field << kByteMatchShift));
        append(offsets, static_cast<std::uint16_t>(sequence.match_offset));
        if (literal_field == kByteLiteralEscape) {
            extensions.push_back(
                static_cast<std::uint8_t>(sequence.literal_length - kByteLiteralEscape));
        }
        if (match_field == kByteMatchEscape) {
            extensions.push_back(static_cast<std::uint8_t>(match_code - kByteMatchEscape));
        }
        literals.insert(literals.end(), content.begin() + position,
                        content.begin() + position + sequence.literal_length);
        position += sequence.literal_length + sequence.match_length;
    }
    std::vector<std::uint8_t> payload;
    payload.reserve(kByteHeaderSize + 3 * tokens.size() + extensions.size() + literals.size());
    append(payload, static_cast<std::uint8_t>(
                        limits.dependency_elimination ? kFlagDependencyElimination : 0));
    append(payload, static_cast<std::uint8_t>(limits.group_size_log2));
    append(payload, std::uint16_t{0});
    append(payload, static_cast<std::uint32_t>(sequences.size()));
    append(payload, static_cast<std::uint32_t>(extensions.size()));
    append(payload, static_cast<std::uint32_t>(literals.size()));
    for (const auto* stream : {&offsets, &tokens, &extensions, &literals}) {
        payload.insert(payload.end(), stream->begin(), stream->end());
    }
    return payload;
}

GOMPFS_TARGET_CLONES bool decode_byte(Bytes payload, MutableBytes content) {
    Streams in;
    if (!split_streams(payload, in)) {
        return false;
    }
    Output out{content.data(), content.data(), content.data() + content.size()};
    const std::uint8_t* const fast_output_end =
        out.end - std::min<std::size_t>(content.size(),
                                        kCopyMargin + kByteLiteralEscape + kByteMaxMatchLength);
    const std::uint8_t* const fast_literals_end =
        in.literals_end - std::min<std::size_t>(in.literals_end - in.literals, 8);
    for (std::uint32_t index = 0; index < in.num_sequences; ++index) {
        const std::uint32_t token = in.tokens[index];
        const std::uint32_t offset = load<std::uint16_t>(in.offsets + 2 * std::size_t{index});
        const std::uint32_t literal_length = token & kByteLiteralEscape;
        const std::uint32_t match_code = token >> kByteMatchShift;
        std::uint8_t* const match = out.next + literal_length;
        // An extension is at hand whether or not the token asks for it: the literals lie behind
        // them.
        const bool extended = match_code == kByteMatchEscape;
        if (literal_length < kByteLiteralEscape && match_code != 0 && offset >= kMinFastOffset &&
            offset <= static_cast<std::size_t>(match - out.start) && out.next < fast_output_end &&
            in.literals < fast_literals_end && in.extensions + extended <= in.extensions_end)
            [[likely]] {
            const std::uint32_t extension = *in.extensions;
            const std::uint32_t match_length =
                match_code + kByteMinMatchLength - 1 + (extended ? extension : 0);
            in.extensions += extended;
            copy_fixed<8>(out.next, in.literals);
            copy_match_fast(match, offset, match_length);
            in.literals += literal_length;
            out.next = match + match_length;
        } else if (!decode_sequence_checked(index, in, out)) {
            return false;
        }
    }
    return out.next == out.end && in.literals == in.literals_end &&
           in.extensions == in.extensions_end;
}

}  // namespace gompfs

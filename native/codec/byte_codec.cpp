// The encoder and the decoder of gompresso-byte on one thread.
//
// A payload is a header of 16 bytes, then the streams match_offsets (u16), tokens (u8), extensions
// (u8) and literals (u8). A token holds the literal length (3 bits) and the match code (5 bits); a
// length that does not fit continues in one byte of extensions. The token and the offset of
// sequence i are at index i, so that a warp's lanes can read them in parallel
// (kernels/codec/byte_block.cuh).
//
// The decoder has two loops. The fast loop copies 16 literals and a multiple of 32 match bytes
// without looking at the exact lengths; it runs while both streams and the output have enough space
// left for that, and stops at a sequence it cannot handle: long literals, an offset below 16, an
// escape out of bounds, an invalid offset. That one sequence is decoded with every bound checked,
// then the fast loop goes on.
#include "codec/byte_codec.h"

#include <algorithm>
#include <utility>

#include "common/copy.h"
#include "common/little_endian.h"
#include "shared/format_constants.h"

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

// Number of literals that the encoder and the fast loop of the decoder copy at once.
constexpr std::size_t kFastLiterals = 16;

// The positions of the decoder in the output and in the streams.
struct Cursor : CopyCursor {
    const std::uint8_t* extension;
};

// Decodes one sequence with every bound checked, and advances the cursor. Returns false if the
// sequence is not valid.
[[gnu::noinline]] bool decode_sequence_checked(std::uint32_t index, const Streams& in,
                                               MutableBytes content, Cursor& at) {
    const std::uint32_t token = in.tokens[index];
    const std::uint32_t offset = load<std::uint16_t>(in.offsets + 2 * std::size_t{index});
    std::size_t literal_length = token & kByteLiteralEscape;
    std::size_t match_code = token >> kByteMatchShift;
    for (auto [length, escape] :
         {std::pair{&literal_length, kByteLiteralEscape}, {&match_code, kByteMatchEscape}}) {
        if (*length == static_cast<std::size_t>(escape)) {
            if (at.extension >= in.extensions_end) {
                return false;
            }
            *length += *at.extension++;
        }
    }
    const std::size_t match_length = match_code == 0 ? 0 : match_code + kByteMinMatchLength - 1;
    return (match_length != 0 || offset == 0) &&
           copy_sequence_checked(literal_length, match_length, offset, in.literals_end, content,
                                 at);
}

std::uint32_t match_code(const Sequence& sequence) {
    return sequence.match_length == 0 ? 0 : sequence.match_length - kByteMinMatchLength + 1;
}

struct PayloadSizes {
    std::uint32_t num_extensions = 0;
    std::uint32_t num_literals = 0;
};

PayloadSizes measure(const std::vector<Sequence>& sequences) {
    PayloadSizes sizes;
    for (const Sequence& sequence : sequences) {
        sizes.num_extensions += sequence.literal_length >= kByteLiteralEscape;
        sizes.num_extensions += match_code(sequence) >= kByteMatchEscape;
        sizes.num_literals += sequence.literal_length;
    }
    return sizes;
}

}  // namespace

ParserLimits byte_parser_limits(const EncodeOptions& options) {
    return {kByteMinMatchLength,     kByteMaxLiteralLength,
            kByteMaxMatchLength,     kByteMaxMatchOffset,
            options.group_size_log2, options.dependency_elimination,
            options.strict_sources,  false};
}

std::vector<std::uint8_t> encode_byte(Bytes content, const std::vector<Sequence>& sequences,
                                      const ParserLimits& limits) {
    const PayloadSizes sizes = measure(sequences);
    // Space after the literals, as many are copied at once.
    std::vector<std::uint8_t> payload(kByteHeaderSize + 3 * sequences.size() +
                                      sizes.num_extensions + sizes.num_literals + kFastLiterals);
    payload[0] = limits.dependency_elimination ? kFlagDependencyElimination : 0;
    payload[1] = static_cast<std::uint8_t>(limits.group_size_log2);
    store(&payload[4], static_cast<std::uint32_t>(sequences.size()));
    store(&payload[8], sizes.num_extensions);
    store(&payload[12], sizes.num_literals);
    std::uint8_t* offset = payload.data() + kByteHeaderSize;
    std::uint8_t* token = offset + 2 * sequences.size();
    std::uint8_t* extension = token + sequences.size();
    std::uint8_t* literal = extension + sizes.num_extensions;
    const std::uint8_t* from = content.data();
    const std::uint8_t* const end = from + content.size();
    for (const Sequence& sequence : sequences) {
        const std::uint32_t code = match_code(sequence);
        const auto literal_field =
            std::min<std::uint32_t>(sequence.literal_length, kByteLiteralEscape);
        const auto match_field = std::min<std::uint32_t>(code, kByteMatchEscape);
        *token++ = static_cast<std::uint8_t>(literal_field | match_field << kByteMatchShift);
        store(offset, static_cast<std::uint16_t>(sequence.match_offset));
        offset += sizeof(std::uint16_t);
        if (literal_field == kByteLiteralEscape) {
            *extension++ = static_cast<std::uint8_t>(sequence.literal_length - kByteLiteralEscape);
        }
        if (match_field == kByteMatchEscape) {
            *extension++ = static_cast<std::uint8_t>(code - kByteMatchEscape);
        }
        const bool is_short = sequence.literal_length <= kFastLiterals &&
                              kFastLiterals <= static_cast<std::size_t>(end - from);
        std::copy_n(from, is_short ? kFastLiterals : sequence.literal_length, literal);
        literal += sequence.literal_length;
        from += sequence.literal_length + sequence.match_length;
    }
    payload.resize(payload.size() - kFastLiterals);
    return payload;
}

GOMPFS_TARGET_CLONES bool decode_byte(Bytes payload, MutableBytes content) {
    Streams in;
    if (!split_streams(payload, in)) {
        return false;
    }
    const std::uint8_t* const start = content.data();
    const std::uint8_t* const end = start + content.size();
    const std::uint8_t* const fast_output_end =
        end -
        std::min<std::size_t>(content.size(), kFastLiterals + kByteMaxMatchLength + kCopyMargin);
    const std::uint8_t* const fast_literals_end =
        in.literals_end - std::min<std::size_t>(in.literals_end - in.literals, kFastLiterals);
    Cursor at{{content.data(), in.literals}, in.extensions};
    for (std::uint32_t index = 0; index < in.num_sequences; ++index) {
        // The fast loop uses local copies of the cursor: a cursor that is passed by reference lives
        // in memory instead of registers.
        std::uint8_t* output = at.output;
        const std::uint8_t* literal = at.literal;
        const std::uint8_t* extension = at.extension;
        for (; index < in.num_sequences && output < fast_output_end && literal < fast_literals_end;
             ++index) {
            const std::uint32_t token = in.tokens[index];
            const std::uint32_t offset = load<std::uint16_t>(in.offsets + 2 * std::size_t{index});
            const std::uint32_t match_code = token >> kByteMatchShift;
            std::uint32_t literal_length = token & kByteLiteralEscape;
            const std::uint8_t* next_extension = extension;
            // This byte exists even if the extensions have ended: the literals follow them. An
            // extension past the end is refused below.
            if (literal_length == kByteLiteralEscape) {
                literal_length += *next_extension++;
                if (literal_length > kFastLiterals) [[unlikely]] {
                    break;
                }
            }
            const bool extended = match_code == kByteMatchEscape;
            const std::uint32_t match_length =
                match_code + kByteMinMatchLength - 1 + (extended ? *next_extension : 0);
            next_extension += extended;
            std::uint8_t* const match = output + literal_length;
            if (match_code == 0 || offset < kMinFastOffset ||
                offset > static_cast<std::size_t>(match - start) ||
                next_extension > in.extensions_end) [[unlikely]] {
                break;
            }
            prefetch_output(output);
            copy_fixed<kFastLiterals>(output, literal);
            copy_match_fast(match, match - offset, match_length);
            extension = next_extension;
            literal += literal_length;
            output = match + match_length;
        }
        at = {{output, literal}, extension};
        if (index < in.num_sequences && !decode_sequence_checked(index, in, content, at)) {
            return false;
        }
    }
    return at.output == end && at.literal == in.literals_end && at.extension == in.extensions_end;
}

}  // namespace gompfs

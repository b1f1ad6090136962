// Chooses the codec of a payload; see payload.h. Encoding is two steps for both codecs: a parser
// cuts the content into sequences (choose_parser.h), then the codec writes them.
#include "codec/payload.h"

#include <algorithm>
#include <stdexcept>

#include "codec/bit_codec.h"
#include "codec/byte_codec.h"
#include "codec/parse/choose_parser.h"
#include "shared/format_constants.h"

namespace gompfs {

namespace {

ParserLimits parser_limits(const EncodeOptions& options) {
    return options.codec == Codec::gompresso_bit ? bit_parser_limits(options)
                                                 : byte_parser_limits(options);
}

}  // namespace

void check_options(const EncodeOptions& options) {
    if (options.codec > Codec::gompresso_bit) {
        throw std::invalid_argument("this codec needs more than one block");
    }
    if (options.dictionary != nullptr && options.codec != Codec::gompresso_bit) {
        throw std::invalid_argument("only gompresso-bit has a dictionary");
    }
    if (options.level < kMinLevel || options.level > kMaxLevel) {
        throw std::invalid_argument("level is out of bounds");
    }
    if (options.group_size_log2 < kMinGroupSizeLog2 ||
        options.group_size_log2 > kMaxGroupSizeLog2) {
        throw std::invalid_argument("group_size_log2 is out of bounds");
    }
}

Codec written_codec(const EncodeOptions& options) {
    return options.dictionary == nullptr ? options.codec : Codec::gompresso_bit_dictionary;
}

std::vector<Sequence> parse_content(Bytes content, const EncodeOptions& options) {
    std::vector<Sequence> sequences;
    sequences.reserve(content.size() / 8);
    parse_block(content, parser_limits(options),
                search_effort(options.level, options.codec == Codec::gompresso_bit), sequences);
    return sequences;
}

std::vector<std::uint8_t> encode_sequences(Bytes content, const std::vector<Sequence>& sequences,
                                           const EncodeOptions& options) {
    const ParserLimits limits = parser_limits(options);
    return options.codec == Codec::gompresso_bit ? encode_bit(content, sequences, limits)
                                                 : encode_byte(content, sequences, limits);
}

std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options) {
    if (options.codec == Codec::stored) {
        return std::nullopt;
    }
    std::vector<std::uint8_t> payload =
        encode_sequences(content, parse_content(content, options), options);
    if (payload.size() >= content.size()) {
        return std::nullopt;
    }
    return payload;
}

bool decode_payload(Codec codec, Bytes payload, MutableBytes content) {
    switch (codec) {
        case Codec::stored:
            if (payload.size() != content.size()) {
                return false;
            }
            std::copy(payload.begin(), payload.end(), content.begin());
            return true;
        case Codec::gompresso_byte:
            return decode_byte(payload, content);
        case Codec::gompresso_bit:
            return decode_bit(payload, content);
        case Codec::gompresso_tadoc:
        case Codec::head:
        case Codec::gompresso_bit_dictionary:
            break;  // these do not stand alone
    }
    return false;
}

}  // namespace gompfs

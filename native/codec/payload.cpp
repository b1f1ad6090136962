// Chooses the codec of a payload; see payload.h. Encoding is two steps for both codecs: a parser
// cuts the content into sequences (choose_parser.h), then the codec writes them.
#include "codec/payload.h"

#include <algorithm>

#include "codec/bit_codec.h"
#include "codec/byte_codec.h"
#include "codec/choose_parser.h"

namespace gompfs {

std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options) {
    if (options.codec == Codec::stored) {
        return std::nullopt;
    }
    const bool bit = options.codec == Codec::gompresso_bit;
    const ParserLimits limits = bit ? bit_parser_limits(options) : byte_parser_limits(options);
    std::vector<Sequence> sequences;
    sequences.reserve(content.size() / 8);
    parse_block(content, limits, search_effort(options.level, bit), sequences);
    std::vector<std::uint8_t> payload =
        bit ? encode_bit(content, sequences, limits) : encode_byte(content, sequences, limits);
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
            break;  // these do not stand alone
    }
    return false;
}

}  // namespace gompfs

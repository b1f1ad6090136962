#include "codec/codec.h"

#include <algorithm>

namespace gompfs {

std::optional<std::vector<std::uint8_t>> encode_payload(Bytes, const EncodeOptions&) {
    return std::nullopt;
}

bool decode_payload(Codec codec, Bytes payload, MutableBytes content) {
    if (codec != Codec::stored || payload.size() != content.size()) {
        return false;
    }
    std::copy(payload.begin(), payload.end(), content.begin());
    return true;
}

}  // namespace gompfs

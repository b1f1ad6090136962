// Encodes the content of one block to a payload, and decodes a payload, with any codec.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/codec.h"

namespace gompfs {

// Returns the payload for the content of one block, or nothing if it would not be smaller than the
// content.
std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options);

// Decodes a payload into exactly content.size() bytes. Returns false if the payload is not valid;
// content is then undefined, but nothing outside `content` was written and nothing outside
// `payload` was read.
bool decode_payload(Codec codec, Bytes payload, MutableBytes content);

}  // namespace gompfs

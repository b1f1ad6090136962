// Encodes the content of one block to a payload, and decodes a payload, with any codec.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/codec.h"
#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

// Throws std::invalid_argument for a codec that needs more than one block, for a dictionary with
// another codec than gompresso-bit, and for a level or a group size that does not exist.
void check_options(const EncodeOptions& options);

// The codec of the blocks that an encoder writes, unless it stores them.
Codec written_codec(const EncodeOptions& options);

// The two steps of encoding, for gompresso-byte and gompresso-bit: cuts the content of one block
// into sequences, and writes sequences that reproduce the content as a payload.
std::vector<Sequence> parse_content(Bytes content, const EncodeOptions& options);
std::vector<std::uint8_t> encode_sequences(Bytes content, const std::vector<Sequence>& sequences,
                                           const EncodeOptions& options);

// Returns the payload for the content of one block, or nothing if it would not be smaller than the
// content.
std::optional<std::vector<std::uint8_t>> encode_payload(Bytes content,
                                                        const EncodeOptions& options);

// Decodes a payload into exactly content.size() bytes. Returns false if the payload is not valid;
// content is then undefined, but nothing outside `content` was written and nothing outside
// `payload` was read.
bool decode_payload(Codec codec, Bytes payload, MutableBytes content);

}  // namespace gompfs

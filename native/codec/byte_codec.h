// gompresso-byte: encodes sequences as whole bytes in four streams (docs/format.md,
// "gompresso-byte"; Gompresso/Byte in Sitaridi et al., ICPP 2016, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "codec/codec.h"
#include "codec/parse/parser.h"
#include "common/bytes.h"

namespace gompfs {

ParserLimits byte_parser_limits(const EncodeOptions& options);

std::vector<std::uint8_t> encode_byte(Bytes content, const std::vector<Sequence>& sequences,
                                      const ParserLimits& limits);

// See decode_payload.
bool decode_byte(Bytes payload, MutableBytes content);

}  // namespace gompfs

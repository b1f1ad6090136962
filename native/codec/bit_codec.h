// gompresso-bit: encodes sequences with three canonical Huffman codes, in 32 sub-blocks
// (docs/format.md; Gompresso/Bit in Sitaridi et al., ICPP 2016, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "codec/codec.h"
#include "codec/parse/parser.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"

namespace gompfs {

ParserLimits bit_parser_limits(const EncodeOptions& options);

std::vector<std::uint8_t> encode_bit(Bytes content, const std::vector<Sequence>& sequences,
                                     const ParserLimits& limits);

// See decode_payload. With a dictionary, decodes a payload of gompresso-bit-dictionary.
bool decode_bit(Bytes payload, MutableBytes content, const SymbolTable* dictionary = nullptr);

}  // namespace gompfs

// gompresso-tadoc: the payload of a block of a part that is stored as a grammar
// (docs/format.md).
//
// A block is a row of references to the symbols of its part. Every symbol stands for bytes of the
// part's pool, so no byte of the output depends on other output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/class_code.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"
#include "common/large_vector.h"

namespace gompfs {

// Encodes the symbols of one block, given as ranks. The first `skip` bytes of the first symbol
// belong to the block before.
std::vector<std::uint8_t> encode_tadoc(std::span<const std::uint32_t> ranks, std::uint16_t skip,
                                       const ClassEncoder& code);

// Decodes a payload into exactly content.size() bytes. Returns false if the payload is not valid;
// content is then undefined, but nothing outside `content` was written and nothing outside
// `payload` was read.
bool decode_tadoc(Bytes payload, const SymbolTable& symbols, MutableBytes content);

// The ranks of a payload, without their bytes.
struct TadocRanks {
    LargeVector<std::uint32_t> memory;  // which is kept from one payload to the next
    std::span<const std::uint32_t> ranks;
    std::uint32_t skip = 0;  // how many bytes of the first symbol belong to the block before

    // Decodes the ranks of a part with so many symbols, at most max_ranks, and at least one.
    // Returns false if the payload is not valid.
    bool read(Bytes payload, const ClassTable& code, std::size_t num_symbols,
              std::size_t max_ranks);
};

}  // namespace gompfs

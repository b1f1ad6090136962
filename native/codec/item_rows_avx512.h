// Decoding of whole rows of items with AVX-512; see item_rows.h. Eight sub-blocks are decoded at
// once. The tables of a code with short codewords fit into registers, so the only reads from memory
// are those of the stream.
#pragma once

#include <cstdint>
#include <span>

#include "codec/class_code.h"
#include "codec/item_stream.h"

namespace gompfs {

// Whether this processor can run the functions below, and the codewords are short enough for them.
bool can_use_avx512(const ClassTable& code);

// As decode_numbers and decode_classes, but for whole rows only.
bool decode_number_rows_avx512(const ItemStream& stream, const ClassTable& code,
                               std::span<std::uint32_t> numbers);
bool decode_class_rows_avx512(const ItemStream& stream, const ClassTable& code,
                              std::span<std::uint8_t> classes);

}  // namespace gompfs

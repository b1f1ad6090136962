// Decodes numbers and classes from the 32 sub-blocks of a stream of gompresso-tadoc. Item i is the
// next item of sub-block i % 32; 32 items are a row.
#pragma once

#include <cstdint>
#include <span>

#include "codec/class_code.h"
#include "codec/item_stream.h"

namespace gompfs {

// Decode as many items as the result has space for. Return false if a sub-block goes past the end
// of the stream. The code must not be empty.
bool decode_numbers(const ItemStream& stream, const ClassTable& code,
                    std::span<std::uint32_t> numbers);
bool decode_classes(const ItemStream& stream, const ClassTable& code,
                    std::span<std::uint8_t> classes);

// The same without AVX-512.
bool decode_numbers_portable(const ItemStream& stream, const ClassTable& code,
                             std::span<std::uint32_t> numbers);
bool decode_classes_portable(const ItemStream& stream, const ClassTable& code,
                             std::span<std::uint8_t> classes);

// The largest number of an array, 0 if it is empty.
std::uint32_t highest_of(const std::uint32_t* numbers, std::size_t count);

}  // namespace gompfs

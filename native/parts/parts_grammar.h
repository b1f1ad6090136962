// The word grammar of a segment whose text is stored in parts: what statistics are computed from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "grammar/grammar.h"
#include "grammar/tokenizer.h"

namespace gompfs {

// An extent of a file in a part of text.
struct TextExtent {
    std::uint32_t part;
    std::uint64_t offset, size;  // in the text of the part
    std::uint64_t ino;
    bool continues;  // whether the file begins in an earlier part
};

// A part of text as it is stored: a head and blocks, or else its text.
struct StoredPart {
    Bytes head;
    std::vector<Bytes> blocks;
    Bytes text;
};

// The extents of each part.
std::vector<std::span<const TextExtent>> split_by_part(std::span<const TextExtent> extents,
                                                       std::size_t num_parts);

// Returns the grammar of the words of all files. `word_section` may be empty; its words may have up
// to max_word_bytes. Extents are in the order of part, offset and inode number; several files may
// share the same bytes. Throws std::invalid_argument if a part is damaged, or if an extent is not a
// file, or a piece of one, of its part.
Grammar read_parts_grammar(std::span<const StoredPart> parts, std::span<const TextExtent> extents,
                           Bytes word_section, std::uint64_t max_word_bytes,
                           const Tokenizer& tokenizer, unsigned num_threads);

}  // namespace gompfs

// Encodes a part of text: its head and its blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parts/part_grammar.h"
#include "parts/shared_tokens.h"
#include "parts/word_section.h"

namespace gompfs {

// A head and blocks as an archive stores them, each with its header.
struct EncodedPart {
    std::vector<std::uint8_t> head;
    std::vector<std::vector<std::uint8_t>> blocks;
};

// Encodes a part whose tokens were counted in `shared`. Returns nothing if the part exceeds a limit
// of the format, such as that of its pool. Decodes what it made, and throws std::logic_error if
// that is not the text of the part.
std::optional<EncodedPart> encode_part(const PartGrammar& part, const SharedTokens& shared,
                                       std::uint32_t block_size);

}  // namespace gompfs

// Encodes a part of text: its head and its blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/part_grammar.h"
#include "text/shared_tokens.h"
#include "text/word_section.h"

namespace gompfs {

// A head and blocks as an archive stores them, each with its header.
struct EncodedPart {
    std::vector<std::uint8_t> head;
    std::vector<std::vector<std::uint8_t>> blocks;
    bool is_readable = true;  // whether the blocks decode to the text of the part
};

// Encodes a part whose tokens were counted in `shared`, and decodes what it made. Returns nothing
// if the part exceeds a limit of the format, such as that of its pool.
std::optional<EncodedPart> encode_part(const PartGrammar& part, const SharedTokens& shared,
                                       std::uint32_t block_size, int level);

}  // namespace gompfs

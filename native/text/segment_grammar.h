// The word grammar of a segment whose text is stored in parts: what statistics are computed from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.h"
#include "text/grammar.h"
#include "text/part_words.h"
#include "text/stored_parts.h"
#include "text/text_extents.h"
#include "text/tokenizer.h"

namespace gompfs {

// Returns the grammar of the words of all files. `word_section` may be empty; its words may have up
// to max_word_bytes. Extents are in the order of part, offset and inode number; several files may
// share the same bytes. Throws std::invalid_argument if a part is damaged, or if an extent is not a
// file, or a piece of one, of its part.
Grammar read_segment_grammar(const StoredParts& parts, std::span<const TextExtent> extents,
                             Bytes word_section, std::uint64_t max_word_bytes,
                             const Tokenizer& tokenizer, unsigned num_threads);

// Returns the grammar of words that were cut without a section. `words` are those of each part.
Grammar grammar_of_words(std::vector<PartWords> words, std::span<const TextExtent> extents,
                         WordRule rule, unsigned num_threads);

// Throws std::invalid_argument if a file continues in a part such that a word of it is in both.
void check_joints(std::span<const PartEnds> ends,
                  std::span<const std::span<const TextExtent>> extents, WordRule rule);

}  // namespace gompfs

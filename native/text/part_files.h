// The words of a part as the statistics take them: its pieces are given to the files whose extents
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar.h"
#include "text/part_words.h"
#include "text/stored_parts.h"
#include "text/text_extents.h"
#include "text/tokenizer.h"
#include "text/word_section.h"

namespace gompfs {

// A part of the grammar, and the parts of other names of files that span several parts. The words
// of each are the indexes of the local words, then the numbers of the global ones.
struct MadeParts {
    Part part;
    std::vector<Part> of_others;  // each has one file
    std::uint32_t num_local_words = 0;
};

// Whether the first file of a part began in the part before.
bool continues(std::span<const std::span<const TextExtent>> extents, std::size_t part);

// Takes a stored part apart. `goes_on`: its last file continues in the next part. Throws
// std::invalid_argument if the part is damaged.
PartWords read_words(const StoredPart& stored, const WordSection& section,
                     const Tokenizer& tokenizer, std::span<const TextExtent> extents, bool goes_on);

// Gives the pieces of a part to their files: a piece of no file is left out, and a piece of several
// files becomes a rule that the root has once for each file. Throws std::invalid_argument if an
// extent is not a piece of the part.
MadeParts make_parts(const PartWords& words, std::span<const TextExtent> extents);

}  // namespace gompfs

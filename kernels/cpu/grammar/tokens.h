// Text that was cut into words elsewhere, as a grammar without rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// Files in a row: the words of file i are those up to ends[i], behind the file before. Words are
// numbers of entries.
struct TokenizedFiles {
    bool continues = false;  // the first file began in the files before
    std::span<const std::uint64_t> inos;
    std::span<const std::uint64_t> ends;
    std::span<const std::uint32_t> words;
};

// A grammar of the kind `none`. ranks[entry] is the place of an entry in the dictionary. Throws
// std::invalid_argument where numbers are not what they should be.
Grammar grammar_of_tokens(Dictionary dictionary, bool words_of_characters,
                          std::span<const std::uint32_t> ranks,
                          const std::vector<TokenizedFiles>& batches, unsigned num_threads);

}  // namespace gompfs

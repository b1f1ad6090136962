// Makes a grammar without rules from text that was cut into words on a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// Consecutive files. The words of file i are words[ends[i - 1] .. ends[i]), given as numbers of
// entries.
struct TokenizedFiles {
    bool continues = false;  // whether the first file began in the batch before
    std::span<const std::uint64_t> inos;
    std::span<const std::uint64_t> ends;
    std::span<const std::uint32_t> words;
};

// Returns a grammar of the kind `none`. ranks[entry] is the number of an entry in the dictionary.
// Throws std::invalid_argument if the numbers are not consistent.
Grammar grammar_of_tokens(Dictionary dictionary, WordRule word_rule,
                          std::span<const std::uint32_t> ranks,
                          const std::vector<TokenizedFiles>& batches, unsigned num_threads);

}  // namespace gompfs

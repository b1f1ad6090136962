// Where an n-gram is, by traversal of the grammar.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/corpus.h"

namespace gompfs {

struct FileCount {
    std::uint32_t file;
    std::uint64_t count;
};

// The files of the corpus that have an n-gram, given as its words, by number, with how often. Each
// rule is visited once, from the last up: an n-gram occurs in it where it lies over its elements,
// and as often as in the rules that it uses. Parts that lack one of the words are not visited.
// Throws std::invalid_argument unless there are as many words as the corpus has in an n-gram.
std::vector<FileCount> find_ngram(const Corpus& corpus, const std::vector<std::string_view>& words,
                                  unsigned num_threads);

}  // namespace gompfs

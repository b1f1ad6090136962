// Finds the files that contain an n-gram, by traversal of the grammar.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "statistics/corpus.h"

namespace gompfs {

struct FileCount {
    std::uint32_t file;
    std::uint64_t count;
};

// Returns the files of the corpus that contain an n-gram (given as its words), by number, with
// counts. Each rule is visited once, from the last one up: the number of occurrences in a rule is
// the number that span its elements plus those of the rules that it uses. Parts that lack one of
// the words are skipped. Throws std::invalid_argument unless the number of words is the corpus's
// ngram_length.
std::vector<FileCount> find_ngram(const Corpus& corpus, const std::vector<std::string_view>& words,
                                  unsigned num_threads);

}  // namespace gompfs

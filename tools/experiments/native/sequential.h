// Sequential TADOC: n-grams are counted on one thread, top-down, with hash tables.
#pragma once

#include <cstdint>
#include <vector>

#include "statistics/corpus.h"

namespace gompfs {

struct CountedNgram {
    NgramKey key;
    std::uint32_t file;  // 0 if files are counted together
    std::uint64_t count;
};

// Counts the n-grams of all files that are not left out, by file or together. The result is in the
// order of keys, then of files.
std::vector<CountedNgram> count_sequentially(const Corpus& corpus, bool per_file);

}  // namespace gompfs

// The lines of a term vector: the words of each file by falling count, or by tf-idf score.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "statistics/corpus.h"

namespace gompfs {

struct WordOfFile {
    std::uint32_t file;
    std::uint32_t word;
    std::uint64_t count;
};

// Needed for scores: a score is count * ln(number of files that have words / number of files that
// have this word).
struct FilesOfWords {
    std::span<const std::uint32_t> by_word;  // number of files that have a word
    std::uint64_t num_files = 0;             // number of files that have words
};

class TermVectorLines {
  public:
    // Lists at most `top` words of a file, by score if `scored` is not null.
    TermVectorLines(const Corpus& corpus, std::uint64_t top, const FilesOfWords* scored)
        : corpus_(corpus), top_(top), scored_(scored) {}

    // Appends the line of a file, given its words in byte order, and brings them into the order in
    // which they are listed.
    void append(std::string& text, std::span<WordOfFile> words) const;

  private:
    double score(const WordOfFile& word) const;

    const Corpus& corpus_;
    const std::uint64_t top_;
    const FilesOfWords* const scored_;
};

}  // namespace gompfs

// The lines of a task from rows that are in order already, as a device returns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "statistics/task_report.h"
#include "statistics/term_vector_lines.h"

namespace gompfs {

// Rows (first, second, count), sorted by first and second. Without `low`, the first number is the
// key. Otherwise `low` and `high` have the halves of the keys, by first number, beginning with the
// first number of the first row.
struct Rows {
    std::span<const std::uint64_t> pairs;  // first << second_bits | second
    std::span<const std::uint64_t> counts;
    unsigned second_bits = 0;
    std::span<const std::uint64_t> low, high;  // `high` is empty if keys have 64 bits

    // The rows from `begin` to `end` - 1. Throws std::invalid_argument if they are outside.
    Rows part(std::uint64_t begin, std::uint64_t end) const;

    // Calls take(key, second, count) for each row. Throws std::invalid_argument if a second number
    // is not below num_seconds, or a key is missing.
    template <typename Take>
    void for_each(std::uint64_t num_seconds, Take&& take) const;
};

class RowLines {
  public:
    // `top` limits the words or files of a line if it is above 0. `scored` is needed for tf-idf.
    RowLines(const Corpus& corpus, PostingsTask task, std::uint64_t top,
             const FilesOfWords& scored);

    // The lines of rows from several sources together. The rows are (n-gram, file, count), for term
    // vectors (file, word, count); for sequence counts, the second number is ignored, and there is
    // one source, whose rows are in the order of the lines.
    std::string text(const std::vector<Rows>& sources) const;

  private:
    std::string counts(const Rows& rows) const;
    std::string index(const std::vector<Rows>& sources) const;
    std::string term_vectors(const std::vector<Rows>& sources) const;

    const Corpus& corpus_;
    const PostingsTask task_;
    const std::uint64_t top_;
    const FilesOfWords scored_;
};

}  // namespace gompfs

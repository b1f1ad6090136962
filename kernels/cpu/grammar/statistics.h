// The statistics of files and n-grams as the text of virtual files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/postings.h"

namespace gompfs {

enum class Task : std::uint8_t {
    inverted_index = 0,         // word<TAB>path<TAB>path...
    term_vector = 1,            // path<TAB>count word<TAB>count word...
    sequence_count = 2,         // n-gram<TAB>count
    ranked_inverted_index = 3,  // n-gram<TAB>count path<TAB>count path...
};

// The lines of a task over the files of a corpus, in pieces of a text. Lines of n-grams are in byte
// order of these, but of sequence_count by falling count first; those of term_vector are in the
// order of the files. Paths are in the order of the files, words in byte order, both by falling
// count first where they are listed with counts. A `top` above 0 is how many: words of each line of
// term_vector, paths of each line of ranked_inverted_index, lines of the others. Throws
// std::length_error where it takes more memory than `memory_limit` bytes, std::invalid_argument for
// term vectors of longer n-grams.
std::vector<std::string> report_statistics(const Corpus& corpus, Task task, std::uint64_t top,
                                           const Traversal& traversal, std::uint64_t memory_limit);

// Whether a task counts files apart.
constexpr bool is_per_file(Task task) { return task != Task::sequence_count; }

// The same, of postings that were gathered elsewhere.
std::vector<std::string> report_runs(const Corpus& corpus, Task task, std::uint64_t top,
                                     std::vector<Run> runs, unsigned num_threads,
                                     std::uint64_t memory_limit);

}  // namespace gompfs

// The statistics of files and n-grams as the text of virtual files.
#pragma once

#include <cstdint>
#include <memory>

#include "grammar/postings.h"
#include "grammar/report.h"

namespace gompfs {

enum class Task : std::uint8_t {
    inverted_index = 0,         // word<TAB>path<TAB>path...
    term_vector = 1,            // path<TAB>count word<TAB>count word...
    sequence_count = 2,         // n-gram<TAB>count
    ranked_inverted_index = 3,  // n-gram<TAB>count path<TAB>count path...
    tfidf = 4,                  // path<TAB>score word<TAB>score word...
};

// Whether a task asks what each file has, or only what all have together.
inline bool is_per_file(Task task) { return task != Task::sequence_count; }

// The lines of a task over the files of a corpus. Lines of n-grams are in byte order of these, but
// of sequence_count by falling count first; those of term_vector and tfidf are in the order of the
// files. Paths are in the order of the files, words in byte order, both by falling count first
// where they are listed with counts or scores. A `top` above 0 is how many words a line of
// term_vector or tfidf has, or paths a line of ranked_inverted_index. Corpus and postings must
// stay; the report puts more aside there, and throws what Spill throws, or std::invalid_argument
// for term vectors of longer n-grams.
std::unique_ptr<Report> make_report(const Corpus& corpus, Task task, std::uint64_t top,
                                    Postings& postings, unsigned num_threads);

}  // namespace gompfs

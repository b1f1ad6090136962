// The statistics of files and n-grams, as the text of virtual files.
#pragma once

#include <cstdint>
#include <memory>

#include "statistics/postings.h"
#include "statistics/report.h"

namespace gompfs {

enum class PostingsTask : std::uint8_t {
    inverted_index = 0,         // word<TAB>path<TAB>path...
    term_vector = 1,            // path<TAB>count word<TAB>count word...
    sequence_count = 2,         // n-gram<TAB>count
    ranked_inverted_index = 3,  // n-gram<TAB>count path<TAB>count path...
    tfidf = 4,                  // path<TAB>score word<TAB>score word...
};

// Makes the report of a task over the files of a corpus.
//
// Order: lines of n-grams are in byte order of the n-grams, those of sequence_count by falling
// count first. Lines of term_vector and tfidf are in the order of the files. In a line, paths are
// in the order of the files and words in byte order; if they are listed with counts or scores, by
// falling count or score first. If `top` is above 0, it limits the words of a line of term_vector
// or tfidf, and the paths of a line of ranked_inverted_index.
//
// The corpus and the postings must outlive the report, which spills more data there. Throws what
// Spill throws, and std::invalid_argument for term vectors of n-grams with more than one word.
std::unique_ptr<Report> make_report(const Corpus& corpus, PostingsTask task, std::uint64_t top,
                                    Postings& postings, unsigned num_threads);

}  // namespace gompfs

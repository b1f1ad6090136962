// Chooses the report of a task; see task_report.h.
#include "statistics/task_report.h"

#include <limits>
#include <stdexcept>

#include "statistics/index_report.h"
#include "statistics/sequence_count_report.h"
#include "statistics/term_vector_report.h"

namespace gompfs {

std::unique_ptr<Report> make_report(const Corpus& corpus, PostingsTask task, std::uint64_t top,
                                    Postings& postings, unsigned num_threads) {
    if (top == 0) {
        top = std::numeric_limits<std::uint64_t>::max();
    }
    switch (task) {
        case PostingsTask::term_vector:
        case PostingsTask::tfidf:
            if (corpus.ngram_length != 1) {
                throw std::invalid_argument("a term vector has only single words");
            }
            return std::make_unique<TermVectorReport>(corpus, postings, task == PostingsTask::tfidf,
                                                      top, num_threads);
        case PostingsTask::sequence_count:
            return std::make_unique<SequenceCountReport>(corpus, postings, num_threads);
        case PostingsTask::ranked_inverted_index:
            return std::make_unique<IndexReport>(corpus, postings, true, top);
        case PostingsTask::inverted_index:
            break;
    }
    return std::make_unique<IndexReport>(corpus, postings, false, top);
}

}  // namespace gompfs

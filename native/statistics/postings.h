// How often n-grams occur in files, gathered from all parts of a corpus.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "common/spill.h"
#include "statistics/corpus.h"
#include "statistics/counting.h"
#include "statistics/posting_runs.h"

namespace gompfs {

struct Traversal {
    Direction direction = Direction::automatic;
    unsigned num_threads = 1;
};

// Spilled runs of postings. The same key and file may be in several runs. Several threads may add
// runs at once.
class Postings {
  public:
    explicit Postings(Spill::Options options) : spill(std::move(options)) {}

    // Adds postings in the order of (term, file); terms are indexes in `keys`, which must ascend.
    // With several threads, each makes runs of its own of a piece of them.
    void add(std::span<const NgramKey> keys, std::span<const Posting> postings,
             unsigned num_threads = 1);
    void add(Run&& run);

    Spill spill;
    std::vector<Run> runs;

  private:
    std::mutex mutex_;
};

// Counts the n-grams of all files that are not left out: by file if per_file is set, otherwise
// together as file 0. Each part being processed takes 64 bytes of memory per n-gram of its rules,
// and at most 128 MiB for postings. Throws what Spill throws.
void gather_postings(const Corpus& corpus, bool per_file, const Traversal& traversal,
                     Postings& postings);

// Counts only the n-grams that span the end of a part, of files that continue in the next part.
void gather_over_edges(const Corpus& corpus, bool per_file, unsigned num_threads,
                       Postings& postings);

}  // namespace gompfs

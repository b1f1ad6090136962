// How often n-grams occur in files, gathered from all parts of a corpus.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "grammar/corpus.h"
#include "grammar/counting.h"
#include "grammar/runs.h"
#include "grammar/spill.h"

namespace gompfs {

struct Traversal {
    bool sequential = false;  // as TADOC does it (sequential.h), which has no choice of direction
    Direction direction = Direction::automatic;
    unsigned num_threads = 1;
};

// Runs of postings, put aside. A key and file may be in several runs. Threads may add runs at once.
class Postings {
  public:
    explicit Postings(Spill::Place place) : spill(std::move(place)) {}

    // Postings by (term, file), their terms places in `keys`, which ascend.
    void add(std::span<const NgramKey> keys, std::span<const Posting> postings);
    void add(Run&& run);

    Spill spill;
    std::vector<Run> runs;

  private:
    std::mutex mutex_;
};

// The n-grams of all files of the corpus that are not left out, with the number of the file or,
// unless `per_file`, 0. Its memory for each part in work: 64 bytes for each n-gram that its rules
// hold, and 128 MiB at most for postings. Throws what Spill throws.
void gather_postings(const Corpus& corpus, bool per_file, const Traversal& traversal,
                     Postings& postings);

// The n-grams over the ends of parts alone, of files that go on from one into the next.
void gather_over_edges(const Corpus& corpus, bool per_file, unsigned num_threads,
                       Postings& postings);

}  // namespace gompfs

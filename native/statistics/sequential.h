// The statistics as the TADOC papers compute them, on one thread: the reference for the parallel
// versions.
#pragma once

#include "statistics/postings.h"

namespace gompfs {

// Writes one run with all n-grams. The traversal is top-down: every rule has a table of the files
// that contain it, with its weight in each, filled by the rules that use it. Its words, or the
// n-grams that span its elements, are then added with these weights to one hash table. Memory: an
// entry per (rule, file) that was not visited yet, and an entry per (n-gram, file), which counts
// towards the limit of `postings`.
void count_sequentially(const Corpus& corpus, bool per_file, Postings& postings);

}  // namespace gompfs

// The analytics as TADOC does them, on one thread: what the parallel ones are compared with.
#pragma once

#include "grammar/postings.h"

namespace gompfs {

// One run of all n-grams. Top-down: every rule has a table of the files that it is in with its
// weight there, filled by the rules that use it; then its words, or the n-grams over its elements,
// are added with these weights to one hash table. Its memory is a hash table's entry for each
// (rule, file) that is not visited yet, and for each (n-gram, file), which the limit of the
// postings counts.
void count_sequentially(const Corpus& corpus, bool per_file, Postings& postings);

}  // namespace gompfs

// A part of a grammar made ready for counting its words or n-grams.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/corpus.h"
#include "grammar/ngrams.h"

namespace gompfs {

// A DAG. Its nodes are the files of the part (what the root holds of each), then its rules but the
// root; children of a node are rules of higher numbers. The terms of a node are the n-grams that
// belong to it (see NgramReader), numbered in the order of their keys; both lists repeat what comes
// again.
struct RuleGraph {
    std::vector<std::uint32_t> files;  // numbers in the corpus, kLeftOut for those left out
    std::vector<std::uint64_t> term_starts, child_starts;  // CSR, by node
    std::vector<std::uint32_t> terms, children;
    std::vector<NgramKey> keys;  // of terms, ascending

    std::uint32_t num_files() const { return static_cast<std::uint32_t>(files.size()); }
    std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(term_starts.size() - 1); }
    std::uint32_t num_terms() const { return static_cast<std::uint32_t>(keys.size()); }
    // What it takes to visit a node.
    std::uint64_t size(std::uint32_t node) const {
        return term_starts[node + 1] - term_starts[node] + child_starts[node + 1] -
               child_starts[node];
    }
};

// The graph of a part; nodes of files that are left out are empty. Throws nothing but bad_alloc.
RuleGraph build_rule_graph(const Corpus& corpus, const NgramReader& reader, const Part& part);

}  // namespace gompfs

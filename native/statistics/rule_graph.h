// A part of a grammar, prepared for counting its words or n-grams.
#pragma once

#include <cstdint>
#include <vector>

#include "statistics/corpus.h"
#include "statistics/ngrams.h"

namespace gompfs {

// A directed acyclic graph. Its nodes are the files of the part (their symbols in the root), then
// the rules except the root. The children of a node are rules with higher node numbers. The terms
// of a node are the n-grams that belong to it (see NgramReader), numbered in the order of their
// keys. Both lists contain repetitions.
struct RuleGraph {
    std::vector<std::uint32_t> files;  // numbers in the corpus; kLeftOut if left out
    std::vector<std::uint64_t> term_starts, child_starts;  // CSR, by node
    std::vector<std::uint32_t> terms, children;
    std::vector<NgramKey> keys;  // of terms, ascending

    std::uint32_t num_files() const { return static_cast<std::uint32_t>(files.size()); }
    std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(term_starts.size() - 1); }
    std::uint32_t num_terms() const { return static_cast<std::uint32_t>(keys.size()); }
    // The cost of visiting a node.
    std::uint64_t size(std::uint32_t node) const {
        return term_starts[node + 1] - term_starts[node] + child_starts[node + 1] -
               child_starts[node];
    }
};

// The graph of a part. Nodes of files that are left out are empty. Throws only std::bad_alloc.
RuleGraph build_rule_graph(const Corpus& corpus, const NgramReader& reader, const Part& part);

}  // namespace gompfs

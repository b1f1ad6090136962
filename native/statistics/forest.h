// The parts of grammars as one forest in arrays, for traversal on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "statistics/corpus.h"
#include "statistics/counted_files.h"

namespace gompfs {

// An element of a forest is a word, or a node with this bit set.
constexpr std::uint32_t kNode = 0x80000000;

// The nodes are the files (their symbols in a root; a file that continues in the next part has a
// node in both, or one of both parts), then the rules of each part in their order, so children have
// higher numbers than their parents. Rules that stand for no words and rules that no file of the
// forest uses are left out.
struct Forest {
    std::vector<std::uint32_t> files;      // by file node: number of the file
    std::vector<std::uint64_t> starts{0};  // CSR, by node
    std::vector<std::uint32_t> elements;
    // By node: 0 for files, else 1 + the largest depth of the nodes that use it.
    std::vector<std::uint32_t> depths;
    // By node: 0 without children, else 1 + the largest height of the children.
    std::vector<std::uint32_t> heights;
    // By part: its file nodes, without one that began in the part before; and its elements.
    std::vector<std::uint64_t> part_files, part_elements;

    std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(depths.size()); }
};

// Builds the forest of the files [begin, end), counted over the files of all parts of all grammars.
// With join_files, a file that continues in the next part has one node, so that no n-gram of it is
// missing. Throws std::invalid_argument if there are too many nodes.
Forest forest_of_corpus(const Corpus& corpus, std::uint64_t begin, std::uint64_t end,
                        bool join_files, unsigned num_threads);

// Builds the forest of some files of a grammar. Words are numbered as in the dictionary, and all
// files have the number 0.
Forest forest_of_grammar(const Grammar& grammar, const CountedFiles& files, std::uint64_t begin,
                         std::uint64_t end, unsigned num_threads);

}  // namespace gompfs

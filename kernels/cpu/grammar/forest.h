// The parts of grammars as one forest in arrays, as a GPU traverses it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "grammar/corpus.h"

namespace gompfs {

// An element of a forest is a word, or a node with this bit.
constexpr std::uint32_t kNode = 0x80000000;

// Nodes are files (what a root holds of each; a file that goes on in the next part has a node in
// both), then the rules below them, each part's in their order: children have higher numbers. Rules
// that stand for no words are left out, as are those that no file of the forest uses.
struct Forest {
    std::vector<std::uint32_t> files;      // by node of a file: its number
    std::vector<std::uint64_t> starts{0};  // CSR, by node
    std::vector<std::uint32_t> elements;
    std::vector<std::uint32_t> depths;  // by node: 0 for files, else one more than any that uses it
    std::vector<std::uint32_t> heights;  // by node: 0 without children, else one more than these

    std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(depths.size()); }
};

// What a forest is made of: parts, each with the numbers of the words of its dictionary (null:
// their places there).
struct ForestPart {
    const Part* part;
    const std::vector<std::uint32_t>* ranks;
};

// The forest of the files from place `begin` up to `end`, counted over the files of all parts.
// file_number(ino) is kLeftOut for those that do not count. Throws std::invalid_argument where
// there are too many nodes.
Forest build_forest(const std::vector<ForestPart>& parts, std::uint64_t begin, std::uint64_t end,
                    const std::function<std::uint32_t(std::uint64_t)>& file_number,
                    unsigned num_threads);

}  // namespace gompfs

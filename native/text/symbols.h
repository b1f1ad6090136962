// The symbols that grammars consist of, and the rules that a grammar builder returns.
#pragma once

#include <cstdint>
#include <vector>

namespace gompfs {

// A symbol is a word (below num_words), a rule (num_words + rule number), or a splitter, which ends
// a file.
using Symbol = std::uint32_t;
constexpr Symbol kSplitter = 0x7fffffff;

// Rules in CSR form: rule r has the symbols [starts[r], starts[r + 1]). Rule 0 is the root and the
// only rule with splitters. Every other rule is used at least twice, and only by rules with lower
// numbers. So one pass over the rules in ascending order visits every use of a rule before the
// rule, and one in descending order visits every rule before its uses.
struct Rules {
    std::vector<std::uint64_t> starts;
    std::vector<Symbol> symbols;

    std::uint32_t size() const { return static_cast<std::uint32_t>(starts.size() - 1); }
};

}  // namespace gompfs

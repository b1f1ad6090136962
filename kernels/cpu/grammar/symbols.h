// The symbols that grammars are made of, and a grammar as its builders leave it.
#pragma once

#include <cstdint>
#include <vector>

namespace gompfs {

// A symbol is a word (below num_words), a rule (num_words + rule number), or a splitter: the end of
// a file.
using Symbol = std::uint32_t;
constexpr Symbol kSplitter = 0x7fffffff;

// Rules in CSR form: rule r holds symbols[starts[r]] up to symbols[starts[r + 1]]. Rule 0 is the
// root, the only one with splitters; every other rule is used at least twice, and only by rules of
// lower numbers.
struct Rules {
    std::vector<std::uint64_t> starts;
    std::vector<Symbol> symbols;

    std::uint32_t size() const { return static_cast<std::uint32_t>(starts.size() - 1); }
};

}  // namespace gompfs

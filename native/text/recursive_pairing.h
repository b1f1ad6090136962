// Batch Re-Pair (recursive pairing), after Larsson and Moffat, "Off-line dictionary-based
// compression", Proc. IEEE 88(11), 2000. recursive_pairing.cpp explains the algorithm.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/large_vector.h"
#include "text/symbols.h"

namespace gompfs {

// Builds grammars of symbols (words below num_words, and splitters, which only the root may
// contain). Reuses its memory from one grammar to the next.
class RecursivePairing {
  public:
    // Builds a grammar of `symbols`. Their content is undefined afterwards.
    Rules build(std::vector<Symbol>& symbols, std::uint32_t num_words);

  private:
    void start(std::vector<Symbol>& symbols, std::uint32_t num_words);
    void mark_single_words();
    bool run_round();
    void list_candidates();
    void count_digrams();
    void list_repeats();
    void choose_occurrences();
    std::size_t replace_chosen();
    std::uint64_t key(std::size_t position) const;
    Rules tidy();

    Symbol* symbols_ = nullptr;
    std::size_t size_ = 0;
    std::uint32_t num_words_ = 0;
    int symbol_bits_ = 0;
    // A position, and the slot of its digram. Lists are in the order of positions.
    struct Candidate {
        std::uint32_t position, slot;
    };
    struct Repeat {
        std::uint32_t position, slot, frequency;
    };
    std::vector<Candidate> candidates_;
    std::vector<Repeat> repeats_;
    std::vector<Candidate> chosen_;
    std::size_t num_candidates_ = 0, num_repeats_ = 0, num_chosen_ = 0;
    LargeVector<std::uint64_t>
        digrams_;  // per slot: key (high bits) and count (low bits, saturated)
    LargeVector<std::uint32_t> rule_of_;  // per slot: number of times chosen, then kUnique | rule
    std::vector<std::pair<Symbol, Symbol>> rules_;
};

}  // namespace gompfs

// Finds the n-grams of a set in a part of a grammar, without expanding its rules.
//
// As in ngrams.h, an n-gram belongs to the lowest rule that contains it whole, and each rule has a
// head and a tail, from which the n-grams that span elements are read. But n-grams are longer here,
// and most words are in no n-gram of the set. So heads and tails are as long as they need to be:
// they end at the first word that is in no n-gram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "statistics/ngram_set.h"
#include "statistics/rule_graph.h"
#include "text/grammar.h"

namespace gompfs {

// The first and last words of a rule or of a file, at most length - 1 of them: what an n-gram that
// begins or ends outside of it can have.
struct NodeEnds {
    std::vector<std::uint32_t> head, tail;
    // Whether there are words after the head that belong to no n-gram that begins before it.
    // Otherwise the head is all there is, and the tail is empty.
    bool is_cut = true;

    const std::vector<std::uint32_t>& last_words() const { return is_cut ? tail : head; }
};

class PartNgrams {
  public:
    // `words` are the words of the part, numbered as in the set, or kUnknown. Throws
    // std::invalid_argument if heads and tails need too much memory.
    PartNgrams(const NgramSet& set, const Part& part, std::span<const std::uint32_t> words);

    // The n-grams of the files, as terms; keys are their numbers in the set. Only rules that have
    // n-grams are children. `files` has the number of each file, or kLeftOut. There are no terms if
    // no n-gram occurs.
    RuleGraph graph(std::span<const std::uint32_t> files);

    // The ends of the part's first file, and of its last file. Call graph() first.
    const NodeEnds& first_ends() const { return first_ends_; }
    const NodeEnds& last_ends() const { return last_ends_; }

  private:
    // A head and a tail, in ends_.
    struct RuleEnds {
        std::uint64_t start = 0;
        std::uint8_t head_size = 0, tail_size = 0;
        bool is_cut = true;
        bool has_ngrams = false;
    };
    struct Hits {
        std::uint64_t begin = 0, end = 0;
    };

    Hits read_node(std::uint64_t begin, std::uint64_t end);
    void read(Symbol symbol);
    void read_word(std::uint32_t word);
    void add_to_head(std::uint32_t word);
    void append_tail(std::vector<std::uint32_t>& words) const;
    NodeEnds ends_of_node() const;
    void read_rules();
    void add_node(RuleGraph& graph, Hits hits, std::uint64_t begin, std::uint64_t end) const;
    void number_terms(RuleGraph& graph) const;
    bool is_rule(Symbol symbol) const { return symbol >= words_.size(); }
    const RuleEnds& ends_of(Symbol rule) const { return rule_ends_[rule - words_.size()]; }

    const NgramSet& set_;
    const Part& part_;
    const std::span<const std::uint32_t> words_;
    const std::size_t capacity_;  // n - 1
    NgramWindow window_;
    std::vector<std::uint32_t> head_;  // of the node that is read
    bool is_cut_ = false;              // whether its head is complete
    bool has_ngrams_ = false;          // whether it, or one of its rules, has n-grams
    std::vector<std::uint32_t> hits_;  // n-grams, node after node
    std::vector<RuleEnds> rule_ends_;  // by rule
    std::vector<Hits> rule_hits_;
    std::vector<std::uint32_t> ends_;
    NodeEnds first_ends_, last_ends_;
};

}  // namespace gompfs

// Finds the first of many literals in a text, in time that grows only with the size of the text.
//
// Almost all positions are passed by a filter of one bit per hash of the first bytes of a literal.
// From a position that passes it, an Aho-Corasick automaton reads the text until no literal can
// have begun: it reads each byte once, however the literals overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "search/match/match.h"
#include "search/pattern/required_literals.h"

namespace gompfs::search {

class LiteralSetFinder {
  public:
    // None of the literals may be empty. In a caseless set, ASCII letters match both cases.
    explicit LiteralSetFinder(const LiteralSet& set);

    // Of the matches that begin first, at `from` or later, that of the first literal of the set.
    std::optional<Match> find(std::string_view text, std::size_t from = 0) const;

  private:
    using Node = std::uint32_t;  // of the trie of all literals; its number
    static constexpr Node kRoot = 0;
    static constexpr std::size_t kNone = std::string_view::npos;
    static constexpr std::uint32_t kNoLiteral = ~std::uint32_t{0};
    static constexpr std::size_t kMaxFilteredBytes = 3;
    static constexpr std::size_t kNumBuckets = 8;
    static constexpr std::size_t kMaxInBuckets = 64;

    void add(std::string_view literal, std::uint32_t number);
    Node add_child(Node parent, std::uint8_t byte);
    void grow_children();
    std::size_t slot_of(Node parent, std::uint8_t byte) const;
    Node child(Node parent, std::uint8_t byte) const {
        return children_[slot_of(parent, byte)].node;
    }
    void link_suffixes();
    Node step(Node node, std::uint8_t byte) const;

    std::uint8_t folded(char byte) const;
    std::uint32_t hash_at(std::string_view text, std::size_t at) const;
    bool may_begin(std::string_view text, std::size_t at) const;
    void fill_buckets(const LiteralSet& set);
    std::size_t skip_by_buckets(std::string_view text, std::size_t from) const;
    std::size_t next_candidate(std::string_view text, std::size_t from) const;
    std::size_t first_match(std::string_view text, std::size_t from) const;
    Match match_at(std::string_view text, std::size_t begin) const;

    // An edge of the trie. The edges of all nodes are in one hash table.
    struct Child {
        Node parent = kRoot;
        Node node = kRoot;  // kRoot marks a free slot: no edge leads to the root
        std::uint8_t byte = 0;
    };

    // For byte `index` of a literal: the buckets, a bit each, whose literals may have a byte with
    // this lower half there, and with this upper half.
    struct Buckets {
        alignas(16) std::uint8_t lower[kMaxFilteredBytes][16], upper[kMaxFilteredBytes][16];
    };

    bool is_caseless_;
    bool has_buckets_ = false;
    Buckets buckets_{};
    std::size_t num_filtered_;           // bytes that are hashed for the filter
    std::vector<std::uint64_t> filter_;  // a bit by hash
    std::vector<Child> children_;        // a power of two
    // By node.
    std::vector<std::uint32_t> depths_;
    std::vector<std::uint32_t> literals_;  // the first literal that ends here, or kNoLiteral
    std::vector<Node> suffixes_;           // the longest proper suffix that is a node
    std::vector<Node> endings_;  // the longest suffix, itself included, that is a literal; or kRoot
};

}  // namespace gompfs::search

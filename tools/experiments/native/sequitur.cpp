// The Sequitur algorithm (Nevill-Manning and Witten 1997, section 2).
//
// Algorithm
//
// Symbols are appended to the root one by one. Two properties hold after each step: no digram
// occurs twice (digram uniqueness), and every rule except the root is used at least twice (rule
// utility). When an appended symbol makes a digram that exists elsewhere, both occurrences are
// replaced by a rule; an existing rule with exactly that digram is reused. Each replacement makes
// new digrams, which are checked in turn. If a replacement leaves a rule with one use, the rule is
// expanded in place (expand). The total time is linear in the length of the text.
//
// Data structures
//
// The symbols of a rule form a ring of doubly linked nodes, closed by a guard node. Nodes are
// stored in one array and reused. The index of digrams is a hash table with open addressing; a slot
// holds the first node of the digram. In a run of equal symbols, as in aaa, overlapping digrams are
// not both indexed (join).
//
// Result
//
// number_rules numbers the rules in reverse post-order, so that every rule is used only by rules
// with lower numbers (Rules).
#include "sequitur.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gompfs {
namespace {

using Node = std::uint32_t;  // index of a symbol's node
constexpr Node kNone = ~0u;
// kGuard | rule is the symbol of the node that closes the ring of a rule.
constexpr Symbol kGuard = 0x80000000;

class Sequitur {
  public:
    Sequitur(const std::vector<Symbol>& symbols, std::uint32_t num_words);
    Rules build();

  private:
    struct Link {
        Symbol symbol;
        Node previous;
        Node next;
    };
    struct Rule {
        Node guard;
        std::uint32_t num_uses;
    };

    // Nodes and rules.
    Node make_node(Symbol symbol);
    std::uint32_t make_rule();
    void join(Node left, Node right);
    void insert_after(Node node, Symbol symbol);
    void remove(Node node);
    bool is_rule(Symbol symbol) const { return symbol >= num_words_ && symbol < kSplitter; }
    bool is_guard(Node node) const { return (nodes_[node].symbol & kGuard) != 0; }
    bool starts_digram(Node node) const;
    Node first(std::uint32_t rule) const { return nodes_[rules_[rule].guard].next; }
    Node last(std::uint32_t rule) const { return nodes_[rules_[rule].guard].previous; }

    // The index of digrams, with open addressing: a slot holds the first node of its digram.
    std::size_t home(Node node) const;
    std::size_t find_slot(Node node) const;
    bool same_digram(Node left, Node right) const;
    void forget_digram(Node node);
    void remember_digram(Node node) { index_[find_slot(node)] = node; }

    // The algorithm.
    bool check(Node node);
    void match(Node node, Node found);
    void substitute(Node node, std::uint32_t rule);
    void expand(Node node);
    Rules number_rules() const;

    const std::vector<Symbol>& input_;
    std::uint32_t num_words_;
    std::vector<Link> nodes_;
    std::vector<Node> free_nodes_;
    std::vector<Rule> rules_;
    std::vector<Node> index_;
};

Sequitur::Sequitur(const std::vector<Symbol>& symbols, std::uint32_t num_words)
    : input_(symbols),
      num_words_(num_words),
      index_(std::bit_ceil(symbols.size() * 2 + 16), kNone) {
    nodes_.reserve(symbols.size() + 16);
}

Node Sequitur::make_node(Symbol symbol) {
    Node node;
    if (free_nodes_.empty()) {
        node = static_cast<Node>(nodes_.size());
        nodes_.push_back({symbol, kNone, kNone});
    } else {
        node = free_nodes_.back();
        free_nodes_.pop_back();
        nodes_[node] = {symbol, kNone, kNone};
    }
    if (is_rule(symbol)) {
        ++rules_[symbol - num_words_].num_uses;
    }
    return node;
}

std::uint32_t Sequitur::make_rule() {
    const auto rule = static_cast<std::uint32_t>(rules_.size());
    rules_.push_back({kNone, 0});
    const Node guard = make_node(kGuard | rule);
    rules_[rule].guard = guard;
    nodes_[guard].next = nodes_[guard].previous = guard;
    return rule;
}

bool Sequitur::starts_digram(Node node) const {
    const Symbol left = nodes_[node].symbol;
    const Symbol right = nodes_[nodes_[node].next].symbol;
    return left < kSplitter && right < kSplitter;
}

std::size_t Sequitur::home(Node node) const {
    const std::uint64_t key =
        std::uint64_t{nodes_[node].symbol} << 32 | nodes_[nodes_[node].next].symbol;
    return key * 0x9e3779b97f4a7c15u >> (64 - std::bit_width(index_.size() - 1));
}

bool Sequitur::same_digram(Node left, Node right) const {
    return nodes_[left].symbol == nodes_[right].symbol &&
           nodes_[nodes_[left].next].symbol == nodes_[nodes_[right].next].symbol;
}

std::size_t Sequitur::find_slot(Node node) const {
    std::size_t slot = home(node);
    while (index_[slot] != kNone && !same_digram(index_[slot], node)) {
        slot = (slot + 1) & (index_.size() - 1);
    }
    return slot;
}

// Removes the digram of a node from the index if the index refers to this node, and closes the gap
// in its probe sequence.
void Sequitur::forget_digram(Node node) {
    if (!starts_digram(node)) {
        return;
    }
    std::size_t gap = find_slot(node);
    if (index_[gap] != node) {
        return;
    }
    const std::size_t mask = index_.size() - 1;
    for (std::size_t slot = (gap + 1) & mask; index_[slot] != kNone; slot = (slot + 1) & mask) {
        if (((slot - home(index_[slot])) & mask) >= ((slot - gap) & mask)) {
            index_[gap] = index_[slot];
            gap = slot;
        }
    }
    index_[gap] = kNone;
}

// Makes two nodes neighbours. In a run of equal symbols the index holds every second digram. If one
// of these is removed, a neighbouring digram of the run is entered instead.
void Sequitur::join(Node left, Node right) {
    if (nodes_[left].next != kNone) {
        forget_digram(left);
        const auto in_run = [&](Node node) {
            const Link& link = nodes_[node];
            return link.previous != kNone && link.next != kNone && link.symbol < kSplitter &&
                   link.symbol == nodes_[link.previous].symbol &&
                   link.symbol == nodes_[link.next].symbol;
        };
        if (in_run(right)) {
            remember_digram(right);
        }
        if (in_run(left)) {
            remember_digram(nodes_[left].previous);
        }
    }
    nodes_[left].next = right;
    nodes_[right].previous = left;
}

void Sequitur::insert_after(Node node, Symbol symbol) {
    const Node inserted = make_node(symbol);
    join(inserted, nodes_[node].next);
    join(node, inserted);
}

void Sequitur::remove(Node node) {
    const Symbol symbol = nodes_[node].symbol;
    join(nodes_[node].previous, nodes_[node].next);
    forget_digram(node);
    if (is_rule(symbol)) {
        --rules_[symbol - num_words_].num_uses;
    }
    free_nodes_.push_back(node);
}

// Enters the digram of a node into the index, or replaces both occurrences if it is already there.
// Returns whether it was there.
bool Sequitur::check(Node node) {
    if (!starts_digram(node)) {
        return false;
    }
    const std::size_t slot = find_slot(node);
    const Node found = index_[slot];
    if (found == kNone) {
        index_[slot] = node;
        return false;
    }
    if (found == node) {
        return false;
    }
    if (nodes_[found].next != node && nodes_[node].next != found) {
        match(node, found);
    }
    return true;
}

void Sequitur::match(Node node, Node found) {
    std::uint32_t rule;
    const Node before = nodes_[found].previous;
    if (is_guard(before) && is_guard(nodes_[nodes_[found].next].next)) {
        rule = nodes_[before].symbol & ~kGuard;
        substitute(node, rule);
    } else {
        rule = make_rule();
        const Symbol left = nodes_[node].symbol;
        const Symbol right = nodes_[nodes_[node].next].symbol;
        insert_after(last(rule), left);
        insert_after(last(rule), right);
        substitute(found, rule);
        substitute(node, rule);
        remember_digram(first(rule));
    }
    for (const Node end : {first(rule), last(rule)}) {
        const Symbol symbol = nodes_[end].symbol;
        if (is_rule(symbol) && rules_[symbol - num_words_].num_uses == 1) {
            expand(end);
        }
    }
}

// Replaces the digram at a node by a rule.
void Sequitur::substitute(Node node, std::uint32_t rule) {
    const Node before = nodes_[node].previous;
    remove(nodes_[before].next);
    remove(nodes_[before].next);
    insert_after(before, num_words_ + rule);
    if (!check(before)) {
        check(nodes_[before].next);
    }
}

// Replaces a node by the content of its rule, whose only use the node is.
void Sequitur::expand(Node node) {
    const std::uint32_t rule = nodes_[node].symbol - num_words_;
    const Node left = nodes_[node].previous;
    const Node right = nodes_[node].next;
    const Node from = first(rule);
    const Node to = last(rule);
    forget_digram(node);
    free_nodes_.push_back(rules_[rule].guard);
    rules_[rule] = {kNone, 0};
    join(left, from);
    join(to, right);
    if (starts_digram(to)) {
        remember_digram(to);
    }
    free_nodes_.push_back(node);
}

Rules Sequitur::build() {
    const std::uint32_t root = make_rule();
    for (const Symbol symbol : input_) {
        insert_after(last(root), symbol);
        check(nodes_[last(root)].previous);
    }
    return number_rules();
}

// Numbers the rules so that each is used by rules with lower numbers only: the reverse of the order
// in which a depth-first walk leaves them.
Rules Sequitur::number_rules() const {
    std::vector<bool> seen(rules_.size());
    std::vector<std::uint32_t> left_order;
    std::vector<std::pair<std::uint32_t, Node>> stack{{0, first(0)}};
    seen[0] = true;
    while (!stack.empty()) {
        auto& [rule, node] = stack.back();
        if (is_guard(node)) {
            left_order.push_back(rule);
            stack.pop_back();
            continue;
        }
        const Symbol symbol = nodes_[node].symbol;
        node = nodes_[node].next;
        if (is_rule(symbol) && !seen[symbol - num_words_]) {
            seen[symbol - num_words_] = true;
            stack.push_back({symbol - num_words_, first(symbol - num_words_)});
        }
    }
    std::vector<std::uint32_t> number(rules_.size());
    std::reverse(left_order.begin(), left_order.end());
    for (std::uint32_t index = 0; index < left_order.size(); ++index) {
        number[left_order[index]] = index;
    }
    Rules result;
    for (const std::uint32_t rule : left_order) {
        result.starts.push_back(result.symbols.size());
        for (Node node = first(rule); !is_guard(node); node = nodes_[node].next) {
            const Symbol symbol = nodes_[node].symbol;
            result.symbols.push_back(is_rule(symbol) ? num_words_ + number[symbol - num_words_]
                                                     : symbol);
        }
    }
    result.starts.push_back(result.symbols.size());
    return result;
}

}  // namespace

Rules build_sequitur(const std::vector<Symbol>& symbols, std::uint32_t num_words) {
    return Sequitur(symbols, num_words).build();
}

}  // namespace gompfs

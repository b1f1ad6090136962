// Chooses rules by their bits; see rule_choice.h.
//
// Re-Pair decides from left to right which digrams become rules, so it often cuts a text where
// other rules of the same grammar would take fewer bits. Here the text of each rule is written
// again: its tokens are expanded, and of all rows of symbols that stand for them the cheapest one
// is taken (a shortest path, from the last token to the first). The bits of a symbol follow from
// how often Re-Pair uses it. Rules are visited from the longest one down, so the number of uses of
// a rule is known when it is reached. A rule that then saves less than it takes in the head is
// dissolved.
//
// A row other than Re-Pair's needs a rule across a boundary between two of its symbols, and the two
// tokens there are then at a boundary inside of that rule or of one that it uses. So the boundaries
// of all rules are counted, and a text is searched only where two symbols meet at one of these:
// that is half of all tokens.
//
// The rules are in a trie with one node for each rule and each position where rules part, so that a
// search takes few steps. Rules of more than kMaxLength tokens are not searched, and stay where
// Re-Pair uses them: this bounds the time for each token.
#include "text/rule_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr std::uint32_t kMaxLength = 32;
constexpr std::uint32_t kNone = 0xffffffff;

// Bits are counted in units of 1/16.
constexpr std::uint32_t kUnitsPerBit = 16;
// What a rule takes in a head besides its symbols: its class, its length, and its first symbol,
// which is cheap because rules are sorted by it.
constexpr std::int64_t kRuleUnits = 11 * kUnitsPerBit;
// A rule that Re-Pair does not use may get about as many uses.
constexpr std::uint32_t kFewestUses = 2;

// Finds the rules that a row of tokens begins with.
class RuleTrie {
  public:
    RuleTrie(std::uint32_t num_tokens, std::size_t num_rules)
        : first_(num_tokens, kNone),
          keys_(std::bit_ceil(4 * num_rules + 2)),
          children_(keys_.size()),
          shift_(64 - std::bit_width(keys_.size() - 1)) {
        nodes_.reserve(2 * num_rules);
    }

    // Adds a rule, and returns the rule that is found for its tokens: the first one of several for
    // the same tokens. The tokens must stay where they are.
    Symbol add(std::span<const Symbol> tokens, Symbol rule) {
        std::uint32_t* link = &first_[tokens[0]];
        std::uint32_t parent = kNone;
        std::uint32_t depth = 0;
        while (true) {
            if (link == nullptr) {
                insert(parent, tokens[depth], new_node(tokens, rule));
                return rule;
            }
            if (*link == kNone) {
                *link = new_node(tokens, rule);
                return rule;
            }
            const Node node = nodes_[*link];
            const auto end = std::min<std::uint32_t>(node.depth, size_of(tokens));
            while (depth < end && node.tokens[depth] == tokens[depth]) {
                ++depth;
            }
            if (depth != node.depth) {
                // The rules part inside of the edge, or the new one ends there.
                const std::uint32_t below = *link;
                const bool ends = depth == tokens.size();
                const std::uint32_t middle = new_node(tokens.first(depth), ends ? rule : kNone);
                *link = middle;
                insert(middle, node.tokens[depth], below);
                if (!ends) {
                    insert(middle, tokens[depth], new_node(tokens, rule));
                }
                return rule;
            }
            if (depth == tokens.size()) {
                return nodes_[*link].rule = node.rule == kNone ? rule : node.rule;
            }
            parent = *link;
            link = find(parent, tokens[depth]);
        }
    }

    // Calls take(rule, length) for each rule that the tokens begin with. A splitter must follow the
    // tokens.
    template <typename Take>
    void for_each_match(const Symbol* tokens, Take&& take) const {
        std::uint32_t next = first_[tokens[0]], depth = 0;
        while (next != kNone) {
            const Node& node = nodes_[next];
            while (depth < node.depth && node.tokens[depth] == tokens[depth]) {
                ++depth;
            }
            if (depth != node.depth) {
                return;
            }
            if (node.rule != kNone) {
                take(node.rule, depth);
            }
            const std::uint32_t* const link = node.is_leaf ? nullptr : find(next, tokens[depth]);
            next = link == nullptr ? kNone : *link;
        }
    }

  private:
    // The tokens from the root of the trie to the node, and the rule for them if there is one.
    struct Node {
        const Symbol* tokens;
        std::uint32_t depth;
        Symbol rule;
        bool is_leaf;
    };

    static std::uint32_t size_of(std::span<const Symbol> tokens) {
        return static_cast<std::uint32_t>(tokens.size());
    }

    std::uint32_t new_node(std::span<const Symbol> tokens, Symbol rule) {
        nodes_.push_back({tokens.data(), size_of(tokens), rule, true});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }

    // Keys are never 0, which marks a free slot.
    static std::uint64_t key(std::uint32_t node, Symbol token) {
        return (std::uint64_t{node} << 32 | token) + 1;
    }

    std::size_t slot_of(std::uint64_t wanted) const {
        std::size_t slot = wanted * 0x9e3779b97f4a7c15u >> shift_;
        while (keys_[slot] != 0 && keys_[slot] != wanted) {
            slot = (slot + 1) & (keys_.size() - 1);
        }
        return slot;
    }

    void insert(std::uint32_t node, Symbol token, std::uint32_t child) {
        const std::size_t slot = slot_of(key(node, token));
        keys_[slot] = key(node, token);
        children_[slot] = child;
        nodes_[node].is_leaf = false;
    }

    const std::uint32_t* find(std::uint32_t node, Symbol token) const {
        const std::size_t slot = slot_of(key(node, token));
        return keys_[slot] == 0 ? nullptr : &children_[slot];
    }
    std::uint32_t* find(std::uint32_t node, Symbol token) {
        const std::size_t slot = slot_of(key(node, token));
        return keys_[slot] == 0 ? nullptr : &children_[slot];
    }

    std::vector<Node> nodes_;
    std::vector<std::uint32_t> first_;  // the first node by token
    // A hash table of the children of nodes, by node and next token.
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> children_;
    int shift_;
};

class RuleChooser {
  public:
    RuleChooser(const Rules& rules, std::uint32_t num_tokens)
        : rules_(rules),
          num_tokens_(num_tokens),
          lengths_(num_tokens + std::size_t{rules.size()}, 1),
          trie_(num_tokens, rules.size()) {}

    Rules choose() {
        set_units();
        expand_rules();
        count_boundaries();
        rewrite_rules();
        return kept_rules();
    }

  private:
    bool is_rule(Symbol symbol) const { return symbol != kSplitter && symbol >= num_tokens_; }
    std::span<const Symbol> symbols_of(std::uint32_t rule) const {
        return std::span(rules_.symbols)
            .subspan(rules_.starts[rule], rules_.starts[rule + 1] - rules_.starts[rule]);
    }
    bool is_short(Symbol symbol) const {
        return symbol != kSplitter && lengths_[symbol] <= kMaxLength;
    }
    std::uint32_t units(Symbol symbol) const { return symbol == kSplitter ? 0 : units_[symbol]; }
    std::span<const Symbol> tokens_of(Symbol rule) const {
        return {&tokens_[token_starts_[rule - num_tokens_]], lengths_[rule]};
    }

    struct Ends {
        Symbol first, last;
    };
    struct Row {
        std::size_t begin, end;
    };
    std::span<const Symbol> row_of(std::uint32_t rule) const {
        return std::span(written_).subspan(rows_[rule].begin, rows_[rule].end - rows_[rule].begin);
    }
    std::size_t boundary_slot(Symbol before, Symbol next) const {
        const std::uint64_t tokens = std::uint64_t{ends_[before].last} << 32 | ends_[next].first;
        return tokens * 0x9e3779b97f4a7c15u >> (64 - std::countr_zero(boundaries_.size()));
    }

    void set_units();
    void expand_rules();
    void count_boundaries();
    void rewrite_rules();
    void rewrite(std::uint32_t rule);
    void write_cheapest(Symbol excluded);
    bool pays(std::uint32_t rule) const;
    Rules kept_rules() const;

    const Rules& rules_;
    const std::uint32_t num_tokens_;
    // By symbol of rules_:
    std::vector<std::uint32_t> lengths_;  // in tokens
    std::vector<std::uint32_t> units_;
    std::vector<std::uint32_t> uses_;
    // The tokens of short rules, and where those of each rule begin.
    std::vector<Symbol> tokens_;
    std::vector<std::size_t> token_starts_;
    RuleTrie trie_;
    std::vector<Symbol> found_;  // by short rule: the one that the trie has for its tokens
    std::vector<Ends> ends_;     // by token and short rule
    std::vector<std::uint8_t> boundaries_;  // a hash table without keys: counts, up to 255
    std::vector<std::uint32_t> order_;      // rules: the root, then from the longest one down
    // The symbols that rules have now, where those of each rule are, and whether it is kept.
    std::vector<Symbol> written_;
    std::vector<Row> rows_;
    std::vector<std::uint8_t> is_kept_;
    // While a rule is written: tokens, the units from each of them to the end, and the symbol that
    // the cheapest row has there.
    std::vector<Symbol> row_;
    std::vector<std::uint32_t> cheapest_;
    std::vector<Symbol> choices_;
};

void RuleChooser::set_units() {
    std::vector<std::uint32_t> uses(lengths_.size());
    for (const Symbol symbol : rules_.symbols) {
        if (symbol != kSplitter) {
            ++uses[symbol];
        }
    }
    const auto log2_units = [](double number) { return std::log2(number) * kUnitsPerBit; };
    const double total = log2_units(static_cast<double>(rules_.symbols.size()));
    std::vector<double> of_count(256);
    for (std::size_t count = 1; count < of_count.size(); ++count) {
        of_count[count] = log2_units(static_cast<double>(count));
    }
    units_.reserve(uses.size());
    for (std::size_t symbol = 0; symbol < uses.size(); ++symbol) {
        const std::uint32_t count = std::max(uses[symbol], symbol < num_tokens_ ? 1 : kFewestUses);
        const double less = count < of_count.size() ? of_count[count] : log2_units(count);
        units_.push_back(static_cast<std::uint32_t>(std::max(total - less, 1.0)));
    }
}

// Sets the lengths of rules and the tokens of short ones, and puts these into the trie.
void RuleChooser::expand_rules() {
    const std::uint32_t num_rules = rules_.size();
    std::size_t num_tokens = 0;
    token_starts_.resize(num_rules);
    lengths_[num_tokens_] = kNone;  // the root is not searched
    for (std::uint32_t rule = num_rules; rule-- > 1;) {
        std::uint32_t length = 0;
        for (const Symbol symbol : symbols_of(rule)) {
            length += lengths_[symbol];
        }
        lengths_[num_tokens_ + rule] = length;
        num_tokens += length <= kMaxLength ? length : 0;
    }
    // Tokens must stay where they are, because the trie refers to them.
    tokens_.reserve(num_tokens);
    for (std::uint32_t rule = num_rules; rule-- > 1;) {
        token_starts_[rule] = tokens_.size();
        for (const Symbol symbol :
             is_short(num_tokens_ + rule) ? symbols_of(rule) : std::span<const Symbol>()) {
            if (is_rule(symbol)) {
                const std::span<const Symbol> tokens = tokens_of(symbol);
                tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
            } else {
                tokens_.push_back(symbol);
            }
        }
    }
    found_.resize(num_rules);
    for (std::uint32_t rule = 1; rule < num_rules; ++rule) {
        if (is_short(num_tokens_ + rule)) {
            found_[rule] = trie_.add(tokens_of(num_tokens_ + rule), num_tokens_ + rule);
        }
    }
}

// Counts how often short rules have each boundary: the last token of a symbol, and the first one of
// the next. Where boundaries share a slot, some texts are searched in vain.
void RuleChooser::count_boundaries() {
    ends_.resize(lengths_.size());
    for (Symbol symbol = 0; symbol < ends_.size(); ++symbol) {
        if (!is_rule(symbol)) {
            ends_[symbol] = {symbol, symbol};
        } else if (is_short(symbol)) {
            ends_[symbol] = {tokens_of(symbol).front(), tokens_of(symbol).back()};
        }
    }
    boundaries_.resize(std::bit_ceil(8 * (rules_.symbols.size() - rules_.starts[1]) + 2));
    for (std::uint32_t rule = 1; rule < rules_.size(); ++rule) {
        const std::span<const Symbol> symbols = symbols_of(rule);
        for (std::size_t at = 1; is_short(num_tokens_ + rule) && at < symbols.size(); ++at) {
            std::uint8_t& count = boundaries_[boundary_slot(symbols[at - 1], symbols[at])];
            count += count != 255 ? 1 : 0;
        }
    }
}

void RuleChooser::rewrite_rules() {
    order_.resize(rules_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin() + 1, order_.end(),
                     [&](std::uint32_t left, std::uint32_t right) {
                         return lengths_[num_tokens_ + left] > lengths_[num_tokens_ + right];
                     });
    uses_.resize(lengths_.size());
    written_.reserve(rules_.symbols.size());
    rows_.resize(rules_.size());
    is_kept_.resize(rules_.size());
    for (const std::uint32_t rule : order_) {
        const std::uint32_t uses = rule == 0 ? 1 : uses_[num_tokens_ + rule];
        if (uses == 0) {
            continue;
        }
        rows_[rule].begin = written_.size();
        rewrite(rule);
        rows_[rule].end = written_.size();
        is_kept_[rule] = rule == 0 || pays(rule) ? 1 : 0;
        for (const Symbol symbol : row_of(rule)) {
            if (symbol != kSplitter) {
                uses_[symbol] += is_kept_[rule] != 0 ? 1 : uses;
            }
        }
    }
}

// Writes a rule again. A long rule that it uses stays where it is, and so does a symbol if no other
// short rule has its boundaries.
void RuleChooser::rewrite(std::uint32_t rule) {
    throw_if_cancelled();
    const std::uint8_t of_itself = is_short(num_tokens_ + rule) ? 1 : 0;
    const std::span<const Symbol> symbols = symbols_of(rule);
    for (std::size_t begin = 0, end = 0; begin < symbols.size(); begin = end) {
        const auto goes_on = [&](Symbol before, Symbol next) {
            return is_short(before) && is_short(next) &&
                   boundaries_[boundary_slot(before, next)] > of_itself;
        };
        while (++end < symbols.size() && goes_on(symbols[end - 1], symbols[end])) {
        }
        if (end - begin == 1) {
            const Symbol symbol = symbols[begin];
            const bool is_found = is_rule(symbol) && is_short(symbol);
            written_.push_back(is_found ? found_[symbol - num_tokens_] : symbol);
            continue;
        }
        for (const Symbol symbol : symbols.subspan(begin, end - begin)) {
            if (is_rule(symbol)) {
                const std::span<const Symbol> tokens = tokens_of(symbol);
                row_.insert(row_.end(), tokens.begin(), tokens.end());
            } else {
                row_.push_back(symbol);
            }
        }
        write_cheapest(num_tokens_ + rule);
    }
}

// Writes the cheapest symbols for row_, without the rule `excluded`, and empties row_.
void RuleChooser::write_cheapest(Symbol excluded) {
    const std::size_t size = row_.size();
    row_.push_back(kSplitter);  // ends all searches
    if (cheapest_.size() <= size) {
        cheapest_.resize(size + 1);
        choices_.resize(size + 1);
    }
    cheapest_[size] = 0;
    for (std::size_t at = size; at-- > 0;) {
        Symbol choice = row_[at];
        std::uint32_t lowest = cheapest_[at + 1] + units(choice);
        if (choice != kSplitter) {
            trie_.for_each_match(&row_[at], [&](Symbol rule, std::uint32_t length) {
                const std::uint32_t with_rule = cheapest_[at + length] + units_[rule];
                if (with_rule < lowest && rule != excluded) {
                    lowest = with_rule;
                    choice = rule;
                }
            });
        }
        cheapest_[at] = lowest;
        choices_[at] = choice;
    }
    for (std::size_t at = 0; at < size;) {
        written_.push_back(choices_[at]);
        at += is_rule(choices_[at]) ? lengths_[choices_[at]] : 1;
    }
    row_.clear();
}

// Whether a rule saves more than it takes.
bool RuleChooser::pays(std::uint32_t rule) const {
    const std::span<const Symbol> row = row_of(rule);
    const std::int64_t uses = uses_[num_tokens_ + rule];
    std::int64_t of_row = 0;
    for (const Symbol symbol : row) {
        of_row += units(symbol);
    }
    return uses > 1 &&
           uses * (of_row - units(num_tokens_ + rule)) > kRuleUnits + of_row - units(row.front());
}

Rules RuleChooser::kept_rules() const {
    std::vector<Symbol> numbers(rules_.size());
    Symbol next = num_tokens_;
    for (const std::uint32_t rule : order_) {
        numbers[rule] = is_kept_[rule] != 0 ? next++ : kNone;
    }
    Rules kept;
    kept.symbols.reserve(rules_.symbols.size());
    kept.starts.push_back(0);
    // Recursive: a rule uses shorter rules only. Dissolved ones are at most kMaxLength deep below a
    // long one, and long ones as deep as those of Re-Pair.
    const auto write = [&](std::uint32_t rule, const auto& again) -> void {
        for (const Symbol symbol : row_of(rule)) {
            if (!is_rule(symbol)) {
                kept.symbols.push_back(symbol);
            } else if (is_kept_[symbol - num_tokens_] != 0) {
                kept.symbols.push_back(numbers[symbol - num_tokens_]);
            } else {
                again(symbol - num_tokens_, again);
            }
        }
    };
    for (const std::uint32_t rule : order_) {
        if (is_kept_[rule] != 0) {
            write(rule, write);
            kept.starts.push_back(kept.symbols.size());
        }
    }
    return kept;
}

}  // namespace

Rules choose_rules(const Rules& rules, std::uint32_t num_tokens) {
    return RuleChooser(rules, num_tokens).choose();
}

}  // namespace gompfs

// Splits long rules; see long_rules.h. Rules are visited before those that use them. A rule becomes
// a row of one or more symbols: a new rule, or several if it is long. Their users take the row in
// its place.
#include "text/long_rules.h"

#include <algorithm>
#include <span>
#include <utility>

namespace gompfs {
namespace {

class RuleSplitter {
  public:
    RuleSplitter(const Rules& rules, std::vector<std::uint32_t> token_sizes)
        : rules_(rules),
          num_tokens_(static_cast<std::uint32_t>(token_sizes.size())),
          rows_(rules.size()),
          sizes_(token_sizes.begin(), token_sizes.end()) {}

    Rules split() {
        for (std::uint32_t rule = rules_.size(); rule-- > 1;) {
            read_row(rule);
            add_pieces(rows_[rule]);
        }
        read_row(0);
        add_rule(row_);
        return in_order();
    }

  private:
    std::uint64_t size(Symbol symbol) const { return symbol == kSplitter ? 0 : sizes_[symbol]; }

    // Sets row_ to the symbols of a rule, with the rows of the rules that it uses.
    void read_row(std::uint32_t rule) {
        row_.clear();
        for (auto index = rules_.starts[rule]; index < rules_.starts[rule + 1]; ++index) {
            const Symbol symbol = rules_.symbols[index];
            if (symbol == kSplitter || symbol < num_tokens_) {
                row_.push_back(symbol);
            } else {
                const std::vector<Symbol>& used = rows_[symbol - num_tokens_];
                row_.insert(row_.end(), used.begin(), used.end());
            }
        }
    }

    // Makes rules of row_, each as long as the limit allows, and puts their symbols into `row`.
    void add_pieces(std::vector<Symbol>& row) {
        for (std::size_t begin = 0, end = 0; begin < row_.size(); begin = end) {
            std::uint64_t piece_size = 0;
            do {
                piece_size += size(row_[end++]);
            } while (end < row_.size() && piece_size + size(row_[end]) <= kMaxRuleSize);
            const auto piece = std::span(row_).subspan(begin, end - begin);
            row.push_back(piece.size() == 1 ? piece[0] : add_rule(piece));
        }
    }

    Symbol add_rule(std::span<const Symbol> symbols) {
        std::uint64_t total = 0;
        for (const Symbol symbol : symbols) {
            total += size(symbol);
        }
        symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
        ends_.push_back(symbols_.size());
        sizes_.push_back(total);
        return static_cast<Symbol>(sizes_.size() - 1);
    }

    // The new rules, the last one first: that is the root.
    Rules in_order() const {
        const auto num_rules = static_cast<std::uint32_t>(ends_.size());
        Rules result;
        result.symbols.reserve(symbols_.size());
        result.starts.push_back(0);
        for (std::uint32_t rule = num_rules; rule-- > 0;) {
            for (std::uint64_t at = rule == 0 ? 0 : ends_[rule - 1]; at < ends_[rule]; ++at) {
                const Symbol symbol = symbols_[at];
                const bool is_rule = symbol != kSplitter && symbol >= num_tokens_;
                result.symbols.push_back(
                    is_rule ? num_tokens_ + num_rules - 1 - (symbol - num_tokens_) : symbol);
            }
            result.starts.push_back(result.symbols.size());
        }
        return result;
    }

    const Rules& rules_;
    const std::uint32_t num_tokens_;
    std::vector<std::vector<Symbol>> rows_;  // by rule of rules_, in new symbols
    std::vector<Symbol> row_;
    // The new rules: their symbols, where each ends in these, and the bytes that each token and
    // each rule stands for.
    std::vector<Symbol> symbols_;
    std::vector<std::uint64_t> ends_, sizes_;
};

bool has_long_rules(const Rules& rules, const std::vector<std::uint32_t>& token_sizes) {
    std::vector<std::uint64_t> sizes(rules.size());
    for (std::uint32_t rule = rules.size(); rule-- > 1;) {
        for (auto index = rules.starts[rule]; index < rules.starts[rule + 1]; ++index) {
            const Symbol symbol = rules.symbols[index];
            sizes[rule] += symbol < token_sizes.size() ? token_sizes[symbol]
                                                       : sizes[symbol - token_sizes.size()];
        }
        if (sizes[rule] > kMaxRuleSize) {
            return true;
        }
    }
    return false;
}

}  // namespace

Rules split_long_rules(Rules rules, const std::vector<std::uint32_t>& token_sizes) {
    return has_long_rules(rules, token_sizes) ? RuleSplitter(rules, token_sizes).split()
                                              : std::move(rules);
}

}  // namespace gompfs

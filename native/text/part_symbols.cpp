// Numbers and ranks symbols; see part_symbols.h.
//
// Frequent symbols get low ranks, because these have short codes. The class of a symbol follows
// from its place in the order of frequency. Its number follows from the order of the head: tokens
// first, then rules by level. Within a level, rules are sorted by the rank of their first symbol,
// which then costs little. The rank of a symbol is known as soon as all symbols before it have
// their numbers.
#include "text/part_symbols.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/long_rules.h"
#include "text/word_prefix.h"

namespace gompfs {
namespace {

// The number of levels has five bits in a head.
constexpr int kMaxLevels = (1 << kNumLevelsBits) - 1;

// Concatenates expansions; only the size and the ends of the result matter.
class Concatenation {
  public:
    void append(const Expansion& symbol) {
        begins_with_separator_ =
            is_empty_ ? symbol.begins_with_separator() : begins_with_separator_;
        size_ += std::uint64_t{symbol.size()} - (is_empty_ ? 0 : symbol.takes_space_of(last_));
        last_ = symbol;
        is_empty_ = false;
    }
    std::uint64_t size() const { return size_; }
    Expansion result() const {
        return {0, static_cast<std::uint32_t>(size_), begins_with_separator_,
                last_.ends_with_word()};
    }

  private:
    bool is_empty_ = true, begins_with_separator_ = false;
    std::uint64_t size_ = 0;
    Expansion last_;
};

// Puts the tokens of a part into a head, and returns their symbols in the head's order.
class TokenOrder {
  public:
    TokenOrder(const PartGrammar& part, const std::vector<std::uint32_t>& numbers) : part_(part) {
        for (Symbol token = 0; token < part.tokens.size(); ++token) {
            const bool is_word = part.are_words[token] != 0;
            if (numbers[token] != SharedTokens::kNotShared) {
                (is_word ? global_words_ : global_separators_).emplace_back(numbers[token], token);
            } else {
                (is_word ? local_words_ : local_separators_).push_back(token);
            }
        }
    }

    std::vector<Symbol> put_into(Head& head) {
        put_local(local_words_, head.local_words);
        put_global(global_words_, head.global_words);
        put_local(local_separators_, head.local_separators);
        put_global(global_separators_, head.global_separators);
        return std::move(order_);
    }

  private:
    using Numbered = std::vector<std::pair<std::uint32_t, Symbol>>;

    void put_local(const std::vector<Symbol>& tokens, TokenList& list) {
        std::vector<std::string_view> texts;
        std::vector<WordPrefix> prefixes;
        for (const Symbol token : tokens) {
            prefixes.emplace_back(part_.tokens[token], static_cast<std::uint32_t>(texts.size()));
            texts.push_back(part_.tokens[token]);
        }
        sort_prefixes(prefixes, texts);
        for (const WordPrefix& next : prefixes) {
            list.append(texts[next.number]);
            order_.push_back(tokens[next.number]);
        }
    }

    void put_global(Numbered& tokens, std::vector<std::uint32_t>& numbers) {
        std::sort(tokens.begin(), tokens.end());
        for (const auto& [number, token] : tokens) {
            numbers.push_back(number);
            order_.push_back(token);
        }
    }

    const PartGrammar& part_;
    std::vector<Symbol> local_words_, local_separators_;
    Numbered global_words_, global_separators_;
    std::vector<Symbol> order_;
};

// Hands out ranks in the order of the symbols' numbers.
class Ranker {
  public:
    // Sets the class of every symbol that is used. counts.back() is for the splitter.
    explicit Ranker(const std::vector<std::uint32_t>& counts) : classes_(counts.size()) {
        // The next rank of the symbols with each count.
        std::vector<std::uint32_t> ranks(*std::max_element(counts.begin(), counts.end()) + 2);
        for (const std::uint32_t count : counts) {
            ++ranks[count];
        }
        std::uint32_t num_before = 0;
        for (std::size_t count = ranks.size(); count-- > 0;) {
            num_before += std::exchange(ranks[count], num_before);
        }
        for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
            if (counts[symbol] != 0) {
                classes_[symbol] = static_cast<std::uint8_t>(class_of(ranks[counts[symbol]]++));
            }
        }
        for (int number_class = 0; number_class < kNumClasses; ++number_class) {
            next_[number_class] = class_base(number_class);
        }
    }

    std::uint8_t class_of_symbol(std::size_t symbol) const { return classes_[symbol]; }
    std::uint32_t take_rank(std::size_t symbol) { return next_[classes_[symbol]]++; }

  private:
    std::vector<std::uint8_t> classes_;
    std::array<std::uint32_t, kNumClasses> next_;
};

std::vector<std::uint32_t> count_symbols(const PartRules& rules) {
    std::vector<std::uint32_t> counts(rules.expansions.size());
    for (std::uint32_t rule = 0; rule < rules.levels.size(); ++rule) {
        if (rule == 0 || rules.levels[rule] != 0) {
            for (const Symbol symbol : rules.symbols_of(rule)) {
                ++(symbol == kSplitter ? counts.back() : counts[symbol]);
            }
        }
    }
    return counts;
}

}  // namespace

PartRules limit_rules(const PartGrammar& part) {
    PartRules rules;
    const std::uint32_t num_rules = part.rules.size();
    rules.num_tokens = part.tokens.size();
    rules.symbols.reserve(part.rules.symbols.size());
    rules.ends.resize(num_rules + std::size_t{1});
    rules.levels.resize(num_rules);
    rules.expansions.reserve(rules.num_tokens + num_rules + std::size_t{1});
    for (std::uint32_t token = 0; token < rules.num_tokens; ++token) {
        const bool is_word = part.are_words[token] != 0;
        const auto size = static_cast<std::uint32_t>(part.tokens[token].size());
        rules.expansions.emplace_back(0, size + (is_word ? 1 : 0), !is_word, is_word);
    }
    rules.expansions.resize(rules.num_tokens + std::size_t{num_rules});
    rules.expansions.emplace_back(0, 0, true, false);
    // A rule is used by rules of lower numbers only.
    for (std::uint32_t rule = num_rules; rule-- > 0;) {
        Concatenation text;
        int level = 0;
        for (auto index = part.rules.starts[rule]; index < part.rules.starts[rule + 1]; ++index) {
            const Symbol symbol = part.rules.symbols[index];
            const bool is_rule = rules.is_rule(symbol);
            const std::uint32_t used = is_rule ? symbol - rules.num_tokens : 0;
            if (is_rule && rules.levels[used] == 0) {
                for (std::size_t at = rules.ends[used + 1]; at < rules.ends[used]; ++at) {
                    rules.symbols.push_back(rules.symbols[at]);
                }
            } else {
                rules.symbols.push_back(symbol);
            }
        }
        rules.ends[rule] = rules.symbols.size();
        for (const Symbol symbol : rules.symbols_of(rule)) {
            text.append(rules.expansion(symbol));
            level = std::max<int>(
                level, rules.is_rule(symbol) ? rules.levels[symbol - rules.num_tokens] : 0);
        }
        if (rule != 0 && text.size() <= kMaxRuleSize && level < kMaxLevels) {
            rules.levels[rule] = static_cast<std::uint8_t>(level + 1);
            rules.expansions[rules.num_tokens + rule] = text.result();
        }
    }
    return rules;
}

RankedPart rank_symbols(const PartGrammar& part, const PartRules& rules,
                        const std::vector<std::uint32_t>& numbers) {
    RankedPart ranked;
    const std::vector<std::uint32_t> counts = count_symbols(rules);
    Ranker ranker(counts);
    ranked.ranks.resize(counts.size());
    const auto number = [&](std::size_t symbol) {
        ranked.head.classes.push_back(ranker.class_of_symbol(symbol));
        ranked.ranks[symbol] = ranker.take_rank(symbol);
    };
    ranked.head.has_splitter = counts.back() != 0;
    if (ranked.head.has_splitter) {
        number(counts.size() - 1);
    }
    for (const Symbol token : TokenOrder(part, numbers).put_into(ranked.head)) {
        number(token);
    }
    // The rules of each level, with the rank of the first symbol, when it is known.
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> levels;
    for (std::uint32_t rule = 0; rule < rules.levels.size(); ++rule) {
        if (rules.levels[rule] != 0) {
            levels.resize(std::max<std::size_t>(levels.size(), rules.levels[rule]));
            levels[rules.levels[rule] - 1].emplace_back(0, rule);
        }
    }
    for (auto& level : levels) {
        for (auto& [first_rank, rule] : level) {
            first_rank = ranked.ranks[rules.symbols_of(rule)[0]];
        }
        std::sort(level.begin(), level.end());
        ranked.rules.level_sizes.push_back(static_cast<std::uint32_t>(level.size()));
        for (const auto& [first_rank, rule] : level) {
            for (const Symbol symbol : rules.symbols_of(rule)) {
                ranked.rules.ranks.push_back(ranked.ranks[symbol]);
            }
            ranked.rules.starts.push_back(static_cast<std::uint32_t>(ranked.rules.ranks.size()));
        }
        for (const auto& [first_rank, rule] : level) {
            number(rules.num_tokens + rule);
        }
    }
    return ranked;
}

}  // namespace gompfs

// Numbers and ranks the symbols of a part, in the order in which its head lists them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/symbol_table.h"
#include "text/head.h"
#include "text/part_grammar.h"
#include "text/shared_tokens.h"

namespace gompfs {

// The root and the rules of a part, without the rules that the format does not allow: these are
// dissolved, that is, replaced by their symbols wherever they occur. Symbols are those of
// PartGrammar; the splitter is kSplitter. Rule 0 is the root.
struct PartRules {
    std::vector<Symbol> symbols;        // of all rules, the last rule first
    std::vector<std::size_t> ends;      // in symbols, by rule, and 0 after the last
    std::vector<std::uint8_t> levels;   // by rule; 0 for the root and for dissolved rules
    std::vector<Expansion> expansions;  // by symbol, without offsets; the last is the splitter
    std::uint32_t num_tokens = 0;

    const Expansion& expansion(Symbol symbol) const {
        return symbol == kSplitter ? expansions.back() : expansions[symbol];
    }
    std::span<const Symbol> symbols_of(std::uint32_t rule) const {
        return std::span(symbols).subspan(ends[rule + 1], ends[rule] - ends[rule + 1]);
    }
    bool is_rule(Symbol symbol) const { return symbol != kSplitter && symbol >= num_tokens; }
};

// Dissolves rules whose expansion or level is too high.
PartRules limit_rules(const PartGrammar& part);

// The head of a part (without rules, symbols and code), its rules as ranks, and the rank of each
// symbol of PartRules; the last one is that of the splitter.
struct RankedPart {
    Head head;
    HeadRules rules;
    std::vector<std::uint32_t> ranks;

    std::uint32_t rank(Symbol symbol) const {
        return symbol == kSplitter ? ranks.back() : ranks[symbol];
    }
};

// `numbers` are those that SharedTokens gives the tokens of the part.
RankedPart rank_symbols(const PartGrammar& part, const PartRules& rules,
                        const std::vector<std::uint32_t>& numbers);

}  // namespace gompfs

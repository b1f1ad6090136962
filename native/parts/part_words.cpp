// Takes a part apart for statistics; see part_words.h.
//
// Separators and splitters are left out of rules. A rule that is left with one symbol is replaced
// by that symbol, and one that is left with none disappears, so that every rule has two symbols or
// more.
#include "parts/part_words.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "codec/block.h"
#include "codec/tadoc_codec.h"
#include "grammar/grammar.h"

namespace gompfs {
namespace {

[[noreturn]] void fail() { throw std::invalid_argument("a part of its text is damaged"); }

Bytes checked_payload(Bytes block, Codec codec) {
    const std::optional<BlockHeader> header = parse_block_header(block);
    if (!header || header->codec != codec || check_block(*header, block) != BlockStatus::ok) {
        fail();
    }
    return block.subspan(kBlockHeaderSize);
}

// The expansions of all symbols of a head, without their bytes.
std::vector<Expansion> expansions_of(const Head& head, const WordSection& words) {
    std::vector<Expansion> expansions;
    expansions.reserve(head.num_symbols());
    const auto add = [&](std::size_t size, bool is_word) {
        expansions.emplace_back(0, static_cast<std::uint32_t>(size), !is_word, is_word);
    };
    const auto add_tokens = [&](const TokenList& local, const TokenList& global,
                                const std::vector<std::uint32_t>& numbers, bool are_words) {
        for (std::uint32_t index = 0; index < local.size(); ++index) {
            add(local[index].size() + are_words, are_words);
        }
        for (const std::uint32_t number : numbers) {
            if (number >= global.size()) {
                fail();
            }
            add(global[number].size() + are_words, are_words);
        }
    };
    if (head.has_splitter) {
        expansions.emplace_back(0, 0, true, false);
    }
    add_tokens(head.local_words, words.words(), head.global_words, true);
    add_tokens(head.local_separators, words.separators(), head.global_separators, false);
    for (std::uint32_t rule = 0; rule < head.num_rules(); ++rule) {
        std::uint64_t size = 0;
        Expansion before;
        const Expansion first = expansions[head.rule_symbols[head.rule_starts[rule]]];
        for (auto index = head.rule_starts[rule]; index < head.rule_starts[rule + 1]; ++index) {
            const Expansion& symbol = expansions[head.rule_symbols[index]];
            size += symbol.size() - std::uint64_t{symbol.takes_space_of(before)};
            before = symbol;
        }
        if (size > kMaxExpansionSize) {
            fail();
        }
        expansions.emplace_back(0, static_cast<std::uint32_t>(size), first.begins_with_separator(),
                                before.ends_with_word());
    }
    return expansions;
}

// Calls take(symbol) for every symbol of the root but the splitter, and end(start, size, goes_on)
// after each piece of a file.
template <typename Take, typename End>
void for_each_piece(const Head& head, const std::vector<Expansion>& expansions,
                    std::span<const Bytes> blocks, Take&& take, End&& end) {
    SymbolTable table;
    table.code = head.code;
    table.expansions.resize(head.num_symbols());  // their number is the limit of ranks
    std::vector<std::uint32_t> ranks;
    for (const Bytes block : blocks) {
        if (!decode_tadoc_ranks(checked_payload(block, Codec::gompresso_tadoc), table, ranks)) {
            fail();
        }
    }
    std::uint64_t position = 0, start = 0;
    Expansion before;
    for (const std::uint32_t rank : ranks) {
        const Symbol symbol = head.symbols[rank];
        const Expansion& expansion = expansions[symbol];
        position -= expansion.takes_space_of(before);
        before = expansion;
        if (head.has_splitter && symbol == 0) {
            end(start, position - start, false);
            start = position;
        } else {
            position += expansion.size();
            take(symbol);
        }
    }
    if (position != start) {
        end(start, position - start, true);
    }
}

class GrammarTaker {
  public:
    GrammarTaker(Head head, const WordSection& words)
        : head_(std::move(head)), expansions_(expansions_of(head_, words)) {}

    PartWords take(std::span<const Bytes> blocks) {
        take_rules();
        take_root(blocks);
        part_.local_words = std::move(head_.local_words);
        part_.global_words = std::move(head_.global_words);
        return std::move(part_);
    }

  private:
    // What a symbol of the head is replaced by: a word, a rule, or nothing (kSplitter).
    void append(Symbol symbol, std::vector<Symbol>& out) const {
        if (const Symbol word_symbol = replacements_[symbol]; word_symbol != kSplitter) {
            out.push_back(word_symbol);
        }
    }

    void take_rules() {
        const std::uint32_t num_words = head_.num_words(), num_rules = head_.num_rules();
        replacements_.assign(head_.num_symbols(), kSplitter);
        for (std::uint32_t word = 0; word < num_words; ++word) {
            replacements_[head_.first_word() + word] = word;
        }
        std::vector<std::vector<Symbol>> kept;
        for (std::uint32_t rule = 0; rule < num_rules; ++rule) {
            std::vector<Symbol> symbols;
            for (auto index = head_.rule_starts[rule]; index < head_.rule_starts[rule + 1];
                 ++index) {
                append(head_.rule_symbols[index], symbols);
            }
            Symbol& replacement = replacements_[head_.first_rule() + rule];
            if (symbols.size() > 1) {
                replacement = num_words + static_cast<Symbol>(kept.size());
                kept.push_back(std::move(symbols));
            } else if (symbols.size() == 1) {
                replacement = symbols[0];
            }
        }
        // Rules of a head use rules of lower numbers, those of a grammar use higher ones.
        const auto turn = [&](Symbol& symbol) {
            if (symbol != kSplitter && symbol >= num_words) {
                symbol = num_words + static_cast<Symbol>(kept.size()) - (symbol - num_words);
            }
        };
        for (std::vector<Symbol>& symbols : kept) {
            std::for_each(symbols.begin(), symbols.end(), turn);
        }
        std::for_each(replacements_.begin(), replacements_.end(), turn);
        part_.rules.resize(kept.size() + 1);
        std::move(kept.rbegin(), kept.rend(), part_.rules.begin() + 1);
    }

    void take_root(std::span<const Bytes> blocks) {
        std::size_t begin = 0;
        for_each_piece(
            head_, expansions_, blocks, [&](Symbol symbol) { append(symbol, part_.root); },
            [&](std::uint64_t start, std::uint64_t size, bool goes_on) {
                part_.pieces.push_back({start, size, begin, part_.root.size(), goes_on});
                begin = part_.root.size();
            });
    }

    Head head_;
    const std::vector<Expansion> expansions_;
    std::vector<Symbol> replacements_;  // by symbol of the head
    PartWords part_;
};

}  // namespace

PartWords words_of_grammar(Bytes head_bytes, std::span<const Bytes> blocks,
                           const WordSection& words) {
    std::optional<Head> head = read_head(checked_payload(head_bytes, Codec::head));
    if (!head) {
        fail();
    }
    return GrammarTaker(std::move(*head), words).take(blocks);
}

CountedPartWords count_words_of_grammar(Bytes head_bytes, std::span<const Bytes> blocks,
                                        const WordSection& words,
                                        std::span<const WeightedRange> ranges) {
    std::optional<Head> head = read_head(checked_payload(head_bytes, Codec::head));
    if (!head) {
        fail();
    }
    std::vector<std::uint64_t> weights(head->num_symbols());
    const auto add = [&](Symbol symbol, std::uint64_t weight) {
        weights[symbol] = std::min(weights[symbol] + weight, kMaxTokens);
    };
    std::vector<Symbol> piece;
    for_each_piece(
        *head, expansions_of(*head, words), blocks, [&](Symbol symbol) { piece.push_back(symbol); },
        [&](std::uint64_t start, std::uint64_t size, bool) {
            if (!ranges.empty() && ranges.front().offset == start && ranges.front().size == size) {
                for (const Symbol symbol : piece) {
                    add(symbol, ranges.front().weight);
                }
                ranges = ranges.subspan(1);
            }
            piece.clear();
        });
    if (!ranges.empty()) {
        throw std::invalid_argument("an extent of a file is not a piece of a part");
    }
    // A rule uses symbols of lower numbers only.
    for (std::uint32_t rule = head->num_rules(); rule-- > 0;) {
        const std::uint64_t weight = weights[head->first_rule() + rule];
        for (auto at = head->rule_starts[rule]; weight != 0 && at < head->rule_starts[rule + 1];
             ++at) {
            add(head->rule_symbols[at], weight);
        }
    }
    CountedPartWords counted;
    counted.counts.assign(weights.begin() + head->first_word(),
                          weights.begin() + head->first_separator());
    counted.local_words = std::move(head->local_words);
    counted.global_words = std::move(head->global_words);
    return counted;
}

PartWords words_of_text(std::string_view text, std::span<const WeightedRange> ranges,
                        const Tokenizer& tokenizer) {
    PartWords part;
    std::map<std::string_view, Symbol> numbers;
    std::vector<std::string_view> found;
    std::uint64_t last_end = 0;
    for (const WeightedRange& range : ranges) {
        if (range.offset < last_end || range.offset > text.size() ||
            range.size > text.size() - range.offset) {
            throw std::invalid_argument("an extent of a file is not a piece of a part");
        }
        last_end = range.offset + range.size;
        const std::size_t begin = found.size();
        tokenizer.for_each_word(text.substr(range.offset, range.size), [&](std::string_view word) {
            numbers.emplace(word, 0);
            found.push_back(word);
        });
        part.pieces.push_back({range.offset, range.size, begin, found.size(), false});
    }
    for (auto& [word, number] : numbers) {
        number = part.local_words.size();
        part.local_words.append(word);
    }
    part.rules.resize(1);
    for (const std::string_view word : found) {
        part.root.push_back(numbers.at(word));
    }
    return part;
}

}  // namespace gompfs

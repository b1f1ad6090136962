// Takes a part apart for statistics; see part_words.h.
//
// Separators and splitters are left out of rules. A rule that is left with one symbol is replaced
// by that symbol, and one that is left with none disappears, so that every rule has two symbols or
// more.
#include "text/part_words.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/cancellation.h"
#include "text/grammar.h"
#include "text/opened_part.h"
#include "text/text_extents.h"
#include "text/word_prefix.h"
#include "text/word_table.h"

namespace gompfs {
namespace {

class GrammarTaker {
  public:
    GrammarTaker(const StoredPart& part, const WordSection& section, const Tokenizer& tokenizer)
        : opened_(part, section, tokenizer), head_(opened_.head) {}

    PartWords take() {
        take_rules();
        take_root();
        part_.local_words = std::move(head_.local_words);
        part_.global_words = std::move(head_.global_words);
        part_.ends = opened_.ends;
        return std::move(part_);
    }

  private:
    // Replaces the symbols of the head, from the lowest rule on. Rules are numbered as they come.
    Rules replace_rules() {
        const std::uint32_t num_words = head_.num_words();
        replacements_.assign(head_.num_symbols(), kSplitter);  // kSplitter: nothing
        for (std::uint32_t word = 0; word < num_words; ++word) {
            replacements_[head_.first_word() + word] = word;
        }
        Rules kept{{0}, {}};
        for (std::uint32_t rule = 0; rule < head_.num_rules(); ++rule) {
            const std::size_t begin = kept.symbols.size();
            for (auto at = head_.rule_starts[rule]; at < head_.rule_starts[rule + 1]; ++at) {
                if (const Symbol symbol = replacements_[head_.rule_symbols[at]];
                    symbol != kSplitter) {
                    kept.symbols.push_back(symbol);
                }
            }
            Symbol& replacement = replacements_[head_.first_rule() + rule];
            if (kept.symbols.size() - begin > 1) {
                replacement = num_words + kept.size();
                kept.starts.push_back(kept.symbols.size());
            } else if (kept.symbols.size() - begin == 1) {
                replacement = kept.symbols.back();
                kept.symbols.pop_back();
            }
        }
        return kept;
    }

    // Rules of a head use rules of lower numbers, those of a grammar use higher ones.
    void take_rules() {
        const Rules kept = replace_rules();
        const std::uint32_t num_words = head_.num_words(), num_rules = kept.size();
        const auto turned = [&](Symbol symbol) {
            return symbol == kSplitter || symbol < num_words
                       ? symbol
                       : num_words + num_rules - (symbol - num_words);
        };
        part_.rules.starts.assign(2, 0);
        part_.rules.symbols.reserve(kept.symbols.size());
        for (std::uint32_t rule = num_rules; rule-- > 0;) {
            for (auto at = kept.starts[rule]; at < kept.starts[rule + 1]; ++at) {
                part_.rules.symbols.push_back(turned(kept.symbols[at]));
            }
            part_.rules.starts.push_back(part_.rules.symbols.size());
        }
        std::transform(replacements_.begin(), replacements_.end(), replacements_.begin(), turned);
    }

    void take_root() {
        std::vector<Symbol> by_rank(head_.num_symbols());
        for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
            by_rank[rank] = replacements_[head_.symbols[rank]];
        }
        std::size_t begin = 0;
        opened_.for_each_piece(
            [&](std::uint32_t rank) {
                if (by_rank[rank] != kSplitter) {
                    part_.root.push_back(by_rank[rank]);
                }
            },
            [&](std::uint64_t start, std::uint64_t size, bool goes_on) {
                part_.pieces.push_back({start, size, begin, part_.root.size(), goes_on});
                begin = part_.root.size();
            });
    }

    OpenedPart opened_;
    Head& head_;
    std::vector<Symbol> replacements_;  // by symbol of the head
    PartWords part_;
};

// All weights below fit into 64 bits if this holds, because each word has a byte.
void check_weights(std::span<const WeightedRange> ranges) {
    std::uint64_t num_bytes = 0;
    for (const WeightedRange& range : ranges) {
        if (range.weight != 0 && range.size > (kMaxTokens - num_bytes) / range.weight) {
            throw std::invalid_argument("there are 2^62 words or more to count");
        }
        num_bytes += range.size * range.weight;
    }
}

// Counts the symbols of the root, each with the weight of its piece.
std::vector<std::uint64_t> weights_of_root(OpenedPart& opened,
                                           std::span<const WeightedRange> ranges) {
    check_weights(ranges);
    std::vector<std::uint64_t> by_rank(opened.head.num_symbols());
    const auto weight_at = [&](std::uint64_t start) {
        return !ranges.empty() && ranges.front().offset == start ? ranges.front().weight : 0;
    };
    std::uint64_t weight = weight_at(0);
    opened.for_each_piece([&](std::uint32_t rank) { by_rank[rank] += weight; },
                          [&](std::uint64_t start, std::uint64_t size, bool) {
                              if (!ranges.empty() && ranges.front().offset == start) {
                                  if (ranges.front().size != size) {
                                      fail_extent();
                                  }
                                  ranges = ranges.subspan(1);
                              }
                              weight = weight_at(start + size);
                          });
    if (!ranges.empty()) {
        fail_extent();
    }
    std::vector<std::uint64_t> weights(by_rank.size());
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        weights[opened.head.symbols[rank]] = by_rank[rank];
    }
    return weights;
}

// Numbers the words of a text.
class WordNumbers {
  public:
    // Appends the number of each word of a text, in the order of first occurrence. Hashes of
    // several words are computed before the first of them is looked up, so that their slots are
    // prefetched.
    void append(std::string_view text, const Tokenizer& tokenizer, std::vector<Symbol>& numbers) {
        constexpr std::size_t kBatch = 16;
        std::array<WordKey, kBatch> batch;
        std::size_t count = 0;
        const auto look_up = [&] {
            for (std::size_t index = 0; index < count; ++index) {
                numbers.push_back(words_.find_or_add(batch[index]));
            }
            count = 0;
        };
        tokenizer.for_each_word(text, [&](std::string_view word) {
            batch[count] = WordKey(word);
            words_.prefetch(batch[count]);
            if (++count == kBatch) {
                look_up();
            }
        });
        look_up();
    }

    // Returns the words in byte order, and replaces the numbers by those of this order.
    TokenList sort(std::vector<Symbol>& numbers) const {
        std::vector<WordPrefix> prefixes;
        prefixes.reserve(words_.words().size());
        for (const std::string_view word : words_.words()) {
            prefixes.emplace_back(word, static_cast<std::uint32_t>(prefixes.size()));
        }
        sort_prefixes(prefixes, words_.words());
        TokenList sorted;
        std::vector<Symbol> sorted_numbers(prefixes.size());
        for (const WordPrefix& prefix : prefixes) {
            sorted_numbers[prefix.number] = sorted.size();
            sorted.append(words_.words()[prefix.number]);
        }
        for (Symbol& number : numbers) {
            number = sorted_numbers[number];
        }
        return sorted;
    }

  private:
    WordTable words_;
};

}  // namespace

PartWords words_of_grammar(const StoredPart& part, const WordSection& section,
                           const Tokenizer& tokenizer) {
    return GrammarTaker(part, section, tokenizer).take();
}

CountedPartWords count_words_of_grammar(const StoredPart& part, const WordSection& section,
                                        const Tokenizer& tokenizer,
                                        std::span<const WeightedRange> ranges) {
    OpenedPart opened(part, section, tokenizer);
    Head& head = opened.head;
    std::vector<std::uint64_t> weights = weights_of_root(opened, ranges);
    // A rule uses symbols of lower numbers only.
    for (std::uint32_t rule = head.num_rules(); rule-- > 0;) {
        const std::uint64_t weight = weights[head.first_rule() + rule];
        for (auto at = head.rule_starts[rule]; weight != 0 && at < head.rule_starts[rule + 1];
             ++at) {
            weights[head.rule_symbols[at]] += weight;
        }
    }
    CountedPartWords counted;
    counted.counts.assign(weights.begin() + head.first_word(),
                          weights.begin() + head.first_separator());
    counted.local_words = std::move(head.local_words);
    counted.global_words = std::move(head.global_words);
    counted.ends = opened.ends;
    return counted;
}

PartWords words_of_text(std::string_view text, std::span<const WeightedRange> ranges,
                        const Tokenizer& tokenizer) {
    PartWords part;
    WordNumbers words;
    std::uint64_t last_end = 0;
    for (const WeightedRange& range : ranges) {
        throw_if_cancelled();
        if (range.offset < last_end || range.offset > text.size() ||
            range.size > text.size() - range.offset) {
            fail_extent();
        }
        last_end = range.offset + range.size;
        const std::size_t begin = part.root.size();
        words.append(text.substr(range.offset, range.size), tokenizer, part.root);
        part.pieces.push_back({range.offset, range.size, begin, part.root.size(), false});
    }
    part.local_words = words.sort(part.root);
    part.rules.starts.assign(2, 0);
    part.ends = ends_of_text(text, tokenizer);
    return part;
}

PartEnds ends_of_text(std::string_view text, const Tokenizer& tokenizer) {
    const auto is_continuation = [](char byte) { return (byte & 0xc0) == 0x80; };
    return {!text.empty() && !is_continuation(text.front()),
            !text.empty() && is_separator(tokenizer.rule(), text.back())};
}

}  // namespace gompfs

// Builds a part; see part_builder.h. The words are numbered in the order of first occurrence, rules
// are built with Re-Pair or Sequitur, the words are sorted, and then renumbered so that the section
// gets small.
#include "grammar/part_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/cancellation.h"
#include "grammar/section_writer.h"
#include "grammar/sequitur.h"
#include "grammar/word_head.h"

namespace gompfs {
namespace {

WordList list_words(const std::vector<std::string_view>& words,
                    const std::vector<std::uint32_t>& sorted) {
    WordList list;
    for (const std::uint32_t word : sorted) {
        list.append(words[word]);
    }
    return list;
}

// Renumbers the words of a part so that frequent words have small numbers, and words of similar
// frequency are in byte order: both make the section smaller. `sorted` has the words in byte order;
// the result maps new numbers to indexes in it.
std::vector<std::uint32_t> order_words(const std::vector<std::uint32_t>& sorted, Rules& rules) {
    const auto num_words = static_cast<std::uint32_t>(sorted.size());
    std::vector<std::uint32_t> counts(num_words);
    for (const Symbol symbol : rules.symbols) {
        if (symbol < num_words) {
            ++counts[symbol];
        }
    }
    constexpr int kNumClasses = 33;
    std::array<std::uint32_t, kNumClasses + 1> next{};  // by rarity: next number of its class
    const auto rarity = [&](std::uint32_t word) { return 32 - std::bit_width(counts[word]); };
    for (std::uint32_t word = 0; word < num_words; ++word) {
        ++next[rarity(word) + 1];
    }
    for (int index = 1; index <= kNumClasses; ++index) {
        next[index] += next[index - 1];
    }
    std::vector<std::uint32_t> number(num_words), indexes(num_words);
    for (std::uint32_t index = 0; index < num_words; ++index) {
        number[sorted[index]] = next[rarity(sorted[index])]++;
        indexes[number[sorted[index]]] = index;
    }
    for (Symbol& symbol : rules.symbols) {
        symbol = symbol < num_words ? number[symbol] : symbol;
    }
    return indexes;
}

}  // namespace

std::vector<std::uint32_t> sort_words(const std::vector<std::string_view>& words) {
    std::vector<WordHead> heads;
    heads.reserve(words.size());
    for (const std::string_view word : words) {
        heads.emplace_back(word, static_cast<std::uint32_t>(heads.size()));
    }
    sort_heads(heads, words);
    std::vector<std::uint32_t> sorted(words.size());
    std::transform(heads.begin(), heads.end(), sorted.begin(),
                   [](const WordHead& head) { return head.number; });
    return sorted;
}

void set_words_and_rules(BuiltPart& part, BuilderKind builder,
                         const std::vector<std::string_view>& words,
                         const std::vector<std::uint32_t>& sorted_words, Rules rules) {
    part.words = list_words(words, sorted_words);
    part.head.words = order_words(sorted_words, rules);
    if (builder == BuilderKind::none) {
        part.root = std::move(rules);
    } else {
        part.rules = write_rules(rules, part.head.words.size());
    }
}

BuiltPart PartBuilder::build(const PartText& text) {
    words_.clear();
    symbols_.clear();
    std::size_t start = 0;
    for (const std::size_t end : text.ends) {
        throw_if_cancelled();
        tokenize(text.view().substr(start, end - start));
        symbols_.push_back(kSplitter);
        start = end;
    }
    BuiltPart part;
    part.head.continues = text.continues;
    part.head.inos = text.inos;
    part.head.num_tokens = symbols_.size() - text.inos.size();
    throw_if_cancelled();
    const std::vector<std::uint32_t> sorted_words = sort_words(words_.words());
    throw_if_cancelled();
    set_words_and_rules(part, builder_, words_.words(), sorted_words, build_rules());
    return part;
}

void PartBuilder::tokenize(std::string_view text) {
    // The hashes of several words are computed before the first of them is looked up, so that their
    // slots are prefetched.
    constexpr std::size_t kBatch = 16;
    std::array<WordKey, kBatch> batch;
    std::size_t count = 0;
    const auto look_up = [&] {
        for (std::size_t index = 0; index < count; ++index) {
            symbols_.push_back(words_.find_or_add(batch[index]));
        }
        count = 0;
    };
    tokenizer_.for_each_word(text, [&](std::string_view word) {
        batch[count] = WordKey(word);
        words_.prefetch(batch[count]);
        if (++count == kBatch) {
            look_up();
        }
    });
    look_up();
}

Rules PartBuilder::build_rules() {
    const auto num_words = static_cast<std::uint32_t>(words_.words().size());
    switch (builder_) {
        case BuilderKind::repair:
            return repair_.build(symbols_, num_words);
        case BuilderKind::sequitur:
            return build_sequitur(symbols_, num_words);
        case BuilderKind::none:
            break;
    }
    return {{0, symbols_.size()}, symbols_};
}

}  // namespace gompfs

// Builds the grammar of a part; see part_grammar.h. The text is cut into words and separators, a
// single space between two words is implied, Re-Pair makes rules of the row of tokens, and those
// that save bits are chosen.
#include "text/part_grammar.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "shared/format_constants.h"
#include "text/long_rules.h"
#include "text/rule_choice.h"

namespace gompfs {

void PartGrammarBuilder::add_token(std::string_view token, bool is_word) {
    const std::uint32_t number = table_.find_or_add(WordKey(token));
    if (number == are_words_.size()) {
        are_words_.push_back(is_word);
    }
    symbols_.push_back(number);
}

// Adds the tokens of one file, or of a piece of a file that begins with a word.
void PartGrammarBuilder::add_piece(std::string_view text) {
    const char* const start = text.data();
    const char* end = start;  // of the tokens so far
    const auto add_separator = [&](const char* next, bool is_between_words) {
        const bool is_implied = is_between_words && next - end == 1 && *end == ' ';
        if (next != end && !is_implied) {
            add_token({end, static_cast<std::size_t>(next - end)}, false);
        }
    };
    tokenizer_.for_each_word(text, [&](std::string_view word) {
        add_separator(word.data(), end != start);
        add_token(word, true);
        end = word.data() + word.size();
    });
    add_separator(start + text.size(), false);
}

std::string text_of(const PartGrammar& part) {
    std::string text;
    text.reserve(part.text_size);
    bool after_word = false;
    std::vector<Symbol> stack;
    const auto push_rule = [&](std::uint32_t rule) {
        stack.insert(
            stack.end(),
            std::make_reverse_iterator(part.rules.symbols.begin() +
                                       static_cast<std::ptrdiff_t>(part.rules.starts[rule + 1])),
            std::make_reverse_iterator(part.rules.symbols.begin() +
                                       static_cast<std::ptrdiff_t>(part.rules.starts[rule])));
    };
    push_rule(0);
    while (!stack.empty()) {
        const Symbol symbol = stack.back();
        stack.pop_back();
        if (symbol == kSplitter) {
            after_word = false;
        } else if (symbol >= part.tokens.size()) {
            push_rule(symbol - part.tokens.size());
        } else {
            const bool is_word = part.are_words[symbol] != 0;
            text.append(is_word && after_word ? " " : "");
            text.append(part.tokens[symbol]);
            after_word = is_word;
        }
    }
    return text;
}

bool has_short_tokens(const PartGrammar& part) {
    for (std::uint32_t token = 0; token < part.tokens.size(); ++token) {
        const std::size_t space = part.are_words[token] != 0 ? 1 : 0;
        if (part.tokens[token].size() + space > kMaxExpansionSize) {
            return false;
        }
    }
    return true;
}

PartGrammar PartGrammarBuilder::build(std::string_view text,
                                      std::span<const std::size_t> file_ends) {
    table_.clear();
    are_words_.clear();
    symbols_.clear();
    std::size_t begin = 0;
    for (const std::size_t end : file_ends) {
        add_piece(text.substr(begin, end - begin));
        symbols_.push_back(kSplitter);
        begin = end;
    }
    add_piece(text.substr(begin));
    PartGrammar part;
    part.tokens.reserve(are_words_.size(), text.size());
    for (const std::string_view token : table_.words()) {
        part.tokens.append(token);
    }
    part.are_words = are_words_;
    std::vector<std::uint32_t> sizes;
    sizes.reserve(are_words_.size());
    for (Symbol token = 0; token < are_words_.size(); ++token) {
        const std::size_t space = are_words_[token] != 0 ? 1 : 0;
        sizes.push_back(static_cast<std::uint32_t>(part.tokens[token].size() + space));
    }
    const auto num_tokens = static_cast<std::uint32_t>(are_words_.size());
    part.rules =
        choose_rules(split_long_rules(pairing_.build(symbols_, num_tokens), sizes), num_tokens);
    part.text_size = static_cast<std::uint32_t>(text.size());
    for (std::size_t at = 0; at < text.size(); at += block_size_) {
        const std::string_view block = text.substr(at, block_size_);
        part.block_xxh3.push_back(XXH3_64bits(block.data(), block.size()));
    }
    return part;
}

}  // namespace gompfs

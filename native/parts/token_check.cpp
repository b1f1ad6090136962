// Checks tokens; see token_check.h. With most rules it depends on each byte alone whether it
// separates words, so the separating bytes of all tokens together are counted.
#include "parts/token_check.h"

#include <bit>
#include <stdexcept>
#include <string_view>

namespace gompfs {
namespace {

template <WordRule kRule>
std::size_t count_separators(std::string_view text) {
    std::size_t count = 0;
    std::size_t at = 0;
    for (; at + 64 <= text.size(); at += 64) {
        count += static_cast<std::size_t>(std::popcount(separator_bits<kRule>(text.data() + at)));
    }
    for (; at < text.size(); ++at) {
        count += is_separator(kRule, text[at]);
    }
    return count;
}

std::size_t count_separators(WordRule rule, std::string_view text) {
    return rule == WordRule::whitespace ? count_separators<WordRule::whitespace>(text)
                                        : count_separators<WordRule::identifiers>(text);
}

// All tokens, with the spaces that a list of words has after each.
std::string_view text_of(const TokenList& tokens) {
    if (tokens.size() == 0) {
        return {};
    }
    const std::uint8_t* const begin = tokens.stored(0).data();
    return {reinterpret_cast<const char*>(begin),
            static_cast<std::size_t>(tokens.bytes_end() - begin)};
}

bool are_words(const TokenList& words, const Tokenizer& tokenizer) {
    if (tokenizer.rule() != WordRule::letters) {
        const std::size_t num_spaces = words.has_spaces() ? words.size() : 0;
        return count_separators(tokenizer.rule(), text_of(words)) == num_spaces;
    }
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        std::size_t size = 0;
        tokenizer.for_each_word(words[number], [&](std::string_view word) { size = word.size(); });
        if (size != words[number].size()) {
            return false;
        }
    }
    return true;
}

bool are_separators(const TokenList& separators, const Tokenizer& tokenizer) {
    if (tokenizer.rule() != WordRule::letters) {
        const std::string_view text = text_of(separators);
        return count_separators(tokenizer.rule(), text) == text.size();
    }
    bool has_word = false;
    for (std::uint32_t number = 0; number < separators.size(); ++number) {
        tokenizer.for_each_word(separators[number], [&](std::string_view) { has_word = true; });
    }
    return !has_word;
}

void check(const TokenList& words, const TokenList& separators, const Tokenizer& tokenizer) {
    if (!are_words(words, tokenizer) || !are_separators(separators, tokenizer)) {
        throw std::invalid_argument("a word of its text is no word by the rule of the archive");
    }
}

}  // namespace

void check_tokens(const WordSection& section, const Tokenizer& tokenizer) {
    check(section.words(), section.separators(), tokenizer);
}

void check_tokens(const Head& head, const Tokenizer& tokenizer) {
    check(head.local_words, head.local_separators, tokenizer);
}

}  // namespace gompfs

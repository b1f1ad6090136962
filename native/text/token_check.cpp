// Checks tokens; see token_check.h. With most rules it depends on each byte alone whether it
// separates words, so the separating bytes of all tokens together are counted.
#include "text/token_check.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <stdexcept>
#include <string_view>

#include "common/parallel.h"

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
    switch (rule) {
        case WordRule::whitespace:
            return count_separators<WordRule::whitespace>(text);
        case WordRule::letters:
            return count_separators<WordRule::letters>(text);
        case WordRule::identifiers:
            return count_separators<WordRule::identifiers>(text);
    }
    return 0;
}

std::size_t count_separators(WordRule rule, std::string_view text, unsigned num_threads) {
    constexpr std::size_t kSliceSize = std::size_t{1} << 18;
    std::atomic<std::size_t> count = 0;
    parallel_for((text.size() + kSliceSize - 1) / kSliceSize, num_threads, [&](std::size_t index) {
        const std::string_view slice = text.substr(index * kSliceSize, kSliceSize);
        count += count_separators(rule, slice);
    });
    return count;
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

std::string_view view_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool have_right_ascii(std::string_view words, std::size_t num_spaces, std::string_view separators,
                      WordRule rule, unsigned num_threads) {
    const auto is_other = [](char byte) { return byte < 0; };
    const auto num_others = std::count_if(separators.begin(), separators.end(), is_other);
    return count_separators(rule, words, num_threads) == num_spaces &&
           count_separators(rule, separators, num_threads) + static_cast<std::size_t>(num_others) ==
               separators.size();
}

bool have_right_bytes(std::string_view words, std::size_t num_spaces, std::string_view separators,
                      WordRule rule, unsigned num_threads) {
    if (!have_right_ascii(words, num_spaces, separators, rule, num_threads)) {
        return false;
    }
    if (rule != WordRule::letters) {
        return std::none_of(separators.begin(), separators.end(),
                            [](char byte) { return byte < 0; });
    }
    bool is_at_start = true;
    return std::none_of(words.begin(), words.end(), [&](char byte) {
        const bool begins_inside = is_at_start && (byte & 0xc0) == 0x80;
        is_at_start = byte == ' ';
        return begins_inside;
    });
}

bool are_words(const TokenList& words, const Tokenizer& tokenizer, unsigned num_threads) {
    if (tokenizer.rule() != WordRule::letters) {
        const std::size_t num_spaces = words.has_spaces() ? words.size() : 0;
        return count_separators(tokenizer.rule(), text_of(words), num_threads) == num_spaces;
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

bool are_separators(const TokenList& separators, const Tokenizer& tokenizer, unsigned num_threads) {
    if (tokenizer.rule() != WordRule::letters) {
        const std::string_view text = text_of(separators);
        return count_separators(tokenizer.rule(), text, num_threads) == text.size();
    }
    bool has_word = false;
    for (std::uint32_t number = 0; number < separators.size(); ++number) {
        tokenizer.for_each_word(separators[number], [&](std::string_view) { has_word = true; });
    }
    return !has_word;
}

void check(const TokenList& words, const TokenList& separators, const Tokenizer& tokenizer,
           unsigned num_threads) {
    if (!are_words(words, tokenizer, num_threads) ||
        !are_separators(separators, tokenizer, num_threads)) {
        throw std::invalid_argument("a word of its text is no word by the rule of the archive");
    }
}

}  // namespace

void check_tokens(const WordSection& section, const Tokenizer& tokenizer, unsigned num_threads) {
    check(section.words(), section.separators(), tokenizer, num_threads);
}

void check_tokens(const Head& head, const Tokenizer& tokenizer) {
    check(head.local_words, head.local_separators, tokenizer, 1);
}

bool have_right_bytes(const WordSection& section, WordRule rule, unsigned num_threads) {
    return have_right_bytes(text_of(section.words()), section.words().size(),
                            text_of(section.separators()), rule, num_threads);
}

bool have_right_bytes(Bytes words, std::size_t num_words, Bytes separators, WordRule rule) {
    return have_right_bytes(view_of(words), num_words, view_of(separators), rule, 1);
}

bool have_right_ascii(const WordSection& section, WordRule rule, unsigned num_threads) {
    return have_right_ascii(text_of(section.words()), section.words().size(),
                            text_of(section.separators()), rule, num_threads);
}

bool have_right_ascii(Bytes words, std::size_t num_words, Bytes separators, WordRule rule) {
    return have_right_ascii(view_of(words), num_words, view_of(separators), rule, 1);
}

}  // namespace gompfs

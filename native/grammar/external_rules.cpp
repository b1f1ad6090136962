// Lays out the text of parts, and checks the rules that come back; see external_rules.h.
#include "grammar/external_rules.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/parallel.h"

namespace gompfs {
namespace {

[[noreturn]] void refuse() {
    throw std::invalid_argument("the rules do not belong to the text that was taken");
}

// Returns the words of the part at an index. Throws if their bounds are not valid.
std::vector<std::string_view> take_words(const PartsInRules& all, std::size_t index) {
    const std::uint32_t begin = all.part_words[index], end = all.part_words[index + 1];
    if (begin > end || end > all.word_ends.size()) {
        refuse();
    }
    std::vector<std::string_view> words;
    words.reserve(end - begin);
    std::uint32_t from = begin == 0 ? 0 : all.word_ends[begin - 1];
    for (std::uint32_t word = begin; word < end; ++word) {
        const std::uint32_t to = all.word_ends[word];
        if (to <= from || to > all.word_bytes.size()) {
            refuse();
        }
        words.emplace_back(all.word_bytes.data() + from, to - from);
        from = to;
    }
    return words;
}

// Returns the rules of the part at an index. Throws if their bounds are not valid.
Rules take_rules(const PartsInRules& all, std::size_t index) {
    const std::uint32_t begin = all.part_rules[index], end = all.part_rules[index + 1];
    if (begin >= end || end > all.rule_ends.size()) {
        refuse();
    }
    const std::uint32_t from = begin == 0 ? 0 : all.rule_ends[begin - 1];
    Rules rules;
    rules.starts.push_back(0);
    for (std::uint32_t rule = begin; rule < end; ++rule) {
        if (all.rule_ends[rule] < from + rules.starts.back() ||
            all.rule_ends[rule] > all.symbols.size()) {
            refuse();
        }
        rules.starts.push_back(all.rule_ends[rule] - from);
    }
    rules.symbols.assign(all.symbols.begin() + from, all.symbols.begin() + all.rule_ends[end - 1]);
    return rules;
}

// Returns the number of words that rules stand for. Throws if they are not the grammar of num_files
// files.
std::uint64_t count_tokens(const Rules& rules, std::uint64_t num_words, std::size_t num_files) {
    const std::uint32_t num_rules = rules.size();
    std::vector<std::uint64_t> sizes(num_rules);
    std::size_t num_splitters = 0;
    for (std::uint32_t rule = num_rules; rule-- > 0;) {
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            const Symbol symbol = rules.symbols[at];
            const std::uint64_t used = symbol - num_words;
            if (symbol == kSplitter && rule == 0) {
                ++num_splitters;
            } else if (symbol < num_words) {
                ++sizes[rule];
            } else if (used > rule && used < num_rules && sizes[used] < kMaxTokens / 2) {
                sizes[rule] += sizes[used];
            } else {
                refuse();
            }
        }
    }
    if (num_splitters != num_files || rules.symbols[rules.starts[1] - 1] != kSplitter) {
        refuse();
    }
    return sizes[0];
}

}  // namespace

PartsInText::PartsInText(std::vector<std::unique_ptr<PartText>> parts) : texts(std::move(parts)) {
    std::size_t start = 0;
    for (const auto& text : texts) {
        part_files.push_back(static_cast<std::uint32_t>(file_ends.size()));
        for (const std::size_t end : text->ends) {
            const std::size_t num_newlines = file_ends.size() - part_files.back();
            file_ends.push_back(static_cast<std::uint32_t>(start + end + num_newlines));
        }
        start += text->bytes.size() + text->ends.size();
    }
    part_files.push_back(static_cast<std::uint32_t>(file_ends.size()));
    if (start >= std::size_t{1} << 32) {
        throw std::length_error("a word of several gigabytes is too much for a device");
    }
}

std::vector<std::size_t> PartsInText::numbers() const {
    std::vector<std::size_t> numbers;
    for (const auto& text : texts) {
        numbers.push_back(text->number);
    }
    return numbers;
}

void PartsInText::move_to(std::span<std::uint8_t> bytes, unsigned num_threads) {
    if (bytes.size() != size()) {
        throw std::invalid_argument("the memory does not have the size of the text");
    }
    parallel_for(texts.size(), num_threads, [&](std::size_t part) {
        const std::unique_ptr<PartText> text = std::move(texts[part]);
        const std::uint32_t file = part_files[part];
        std::uint8_t* out = bytes.data() + (file == 0 ? 0 : file_ends[file - 1] + std::size_t{1});
        std::size_t start = 0;
        for (const std::size_t end : text->ends) {
            out = std::copy(text->bytes.data() + start, text->bytes.data() + end, out);
            *out++ = '\n';
            start = end;
        }
    });
}

void check_num_parts(const PartsInRules& rules, std::size_t num_parts) {
    const auto are_bounds = [&](std::span<const std::uint32_t> bounds, std::size_t end) {
        return bounds.size() == num_parts + 1 && bounds.front() == 0 && bounds.back() == end;
    };
    if (!are_bounds(rules.part_words, rules.word_ends.size()) ||
        !are_bounds(rules.part_rules, rules.rule_ends.size())) {
        refuse();
    }
}

void set_external_rules(BuiltPart& part, BuilderKind builder, const PartsInRules& rules,
                        std::size_t index) {
    const std::vector<std::string_view> words = take_words(rules, index);
    const std::vector<std::uint32_t> sorted_words = sort_words(words);
    const auto is_same = [&](std::uint32_t left, std::uint32_t right) {
        return words[left] == words[right];
    };
    if (std::adjacent_find(sorted_words.begin(), sorted_words.end(), is_same) !=
        sorted_words.end()) {
        refuse();
    }
    Rules own = take_rules(rules, index);
    part.head.num_tokens = count_tokens(own, words.size(), part.head.inos.size());
    set_words_and_rules(part, builder, words, sorted_words, std::move(own));
}

}  // namespace gompfs

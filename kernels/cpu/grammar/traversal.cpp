#include "grammar/traversal.h"

#include <algorithm>
#include <atomic>

#include "common/parallel.h"

namespace gompfs {
namespace {

// Sums stay below kMaxTokens, whatever rules a hostile section has.
void add_to(std::uint64_t& sum, std::uint64_t weight) { sum = std::min(sum + weight, kMaxTokens); }

// Adds the counts of a part's words; other threads may add to the same counts meanwhile. Returns
// how many words were counted, with their repetitions.
std::uint64_t add_word_counts(const Part& part, const CountedFiles& files, WordCounts& total) {
    if (std::none_of(part.inos.begin(), part.inos.end(),
                     [&](std::uint64_t ino) { return files.contains(ino); })) {
        return 0;
    }
    const auto num_words = static_cast<Symbol>(part.words.size());
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> weights(num_words + rules.size());  // of words, then rules
    std::size_t file = 0;
    const auto weight_of_file = [&]() -> std::uint64_t {
        return file < part.inos.size() && files.contains(part.inos[file]);
    };
    std::uint64_t weight = weight_of_file();
    for (std::uint64_t at = 0; at < rules.starts[1]; ++at) {
        if (rules.symbols[at] == kSplitter) {
            ++file;
            weight = weight_of_file();
        } else {
            add_to(weights[rules.symbols[at]], weight);
        }
    }
    for (std::uint32_t rule = 1; rule < rules.size(); ++rule) {
        const std::uint64_t weight_of_rule = weights[num_words + rule];
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            add_to(weights[rules.symbols[at]], weight_of_rule);
        }
    }
    std::uint64_t num_tokens = 0;
    // An addition waits for memory and nothing overtakes it, so what later ones need is fetched
    // early.
    constexpr std::size_t kAhead = 16;
    for (std::size_t word = 0; word < num_words; ++word) {
        if (word + kAhead < num_words) {
            __builtin_prefetch(&total[part.words[word + kAhead]], 1);
        }
        std::atomic_ref(total[part.words[word]])
            .fetch_add(weights[word], std::memory_order_relaxed);
        add_to(num_tokens, weights[word]);
    }
    return num_tokens;
}

// Each thread is the first to touch its share of the memory, which takes longer than to clear it.
WordCounts zeros(std::size_t size, unsigned num_threads) {
    WordCounts counts;
    counts.resize(size);
    parallel_for(num_threads, num_threads, [&](std::size_t part) {
        const auto place = [&](std::size_t bound) {
            return counts.begin() + static_cast<std::ptrdiff_t>(size * bound / num_threads);
        };
        std::fill(place(part), place(part + 1), 0);
    });
    return counts;
}

}  // namespace

std::vector<std::uint64_t> rule_sizes(const Part& part) {
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> sizes(rules.size());
    for (std::uint32_t rule = rules.size(); rule-- > 0;) {
        std::uint64_t size = 0;
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            const Symbol symbol = rules.symbols[at];
            if (symbol != kSplitter) {
                size += symbol < part.words.size() ? 1 : sizes[symbol - part.words.size()];
                size = std::min(size, kMaxTokens);
            }
        }
        sizes[rule] = size;
    }
    return sizes;
}

std::vector<std::uint64_t> file_sizes(const Part& part) {
    const std::vector<std::uint64_t> sizes = rule_sizes(part);
    std::vector<std::uint64_t> files(part.inos.size());
    std::size_t file = 0;
    for (std::uint64_t at = 0; at < part.rules.starts[1]; ++at) {
        const Symbol symbol = part.rules.symbols[at];
        if (symbol == kSplitter) {
            ++file;
        } else {
            files[file] += symbol < part.words.size() ? 1 : sizes[symbol - part.words.size()];
        }
    }
    return files;
}

WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads) {
    WordCounts counts = zeros(grammar.dictionary.size(), num_threads);
    parallel_for(grammar.parts.size(), num_threads,
                 [&](std::size_t index) { add_word_counts(grammar.parts[index], files, counts); });
    return counts;
}

CountedSection::CountedSection(std::span<const std::uint8_t> section, const CountedFiles& files,
                               unsigned num_threads)
    : section_(section, num_threads), counts_(zeros(section_.words().size(), num_threads)) {
    section_.read([this](std::size_t range) { section_.words().check(range); },
                  [&](std::size_t, Part& part) {
                      const std::uint64_t num_tokens = add_word_counts(part, files, counts_);
                      const bool is_whole = files.contain_all(part.inos);
                      check_num_tokens(part, is_whole ? num_tokens : rule_sizes(part)[0]);
                  });
}

const Dictionary& CountedSection::dictionary(unsigned num_threads) const {
    std::call_once(is_expanded_, [&] {
        dictionary_ = section_.words().room();
        parallel_for(section_.words().num_ranges(), num_threads,
                     [this](std::size_t range) { section_.words().expand(range, dictionary_); });
    });
    return dictionary_;
}

}  // namespace gompfs

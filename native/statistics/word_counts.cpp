// Counts words top-down; see word_counts.h. Weights flow from the files in the root down to rules
// and words. Parts are independent; they add to the common counts with atomic operations.
#include "statistics/word_counts.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "common/cancellation.h"
#include "common/parallel.h"

namespace gompfs {
namespace {

// Sums are limited to kMaxTokens, whatever rules a hostile archive has.
void add_to(std::uint64_t& sum, std::uint64_t weight) { sum = std::min(sum + weight, kMaxTokens); }

// The weights of a part's words, then of its rules.
std::vector<std::uint64_t> weights_of(const Part& part, const CountedFiles& files) {
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> weights(part.words.size() + rules.size());
    const auto weight_of_file = [&](std::size_t file) -> std::uint64_t {
        return file < part.inos.size() && files.contains(part.inos[file]);
    };
    std::size_t file = 0;
    CancellationPoint point;
    for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
        point();
        std::uint64_t weight = rule == 0 ? weight_of_file(0) : weights[part.words.size() + rule];
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            if (rules.symbols[at] == kSplitter) [[unlikely]] {
                weight = weight_of_file(++file);
            } else {
                add_to(weights[rules.symbols[at]], weight);
            }
        }
    }
    return weights;
}

void add_part(const Part& part, const CountedFiles& files, WordCounts& total) {
    const std::vector<std::uint64_t> weights = weights_of(part, files);
    // An atomic addition waits for memory and later instructions do not overtake it, so the next
    // counts are prefetched.
    constexpr std::size_t kAhead = 16;
    for (std::size_t word = 0; word < part.words.size(); ++word) {
        if (word + kAhead < part.words.size()) {
            __builtin_prefetch(&total[part.words[word + kAhead]], 1);
        }
        std::atomic_ref(total[part.words[word]])
            .fetch_add(weights[word], std::memory_order_relaxed);
    }
}

}  // namespace

WordCounts word_counts(const Grammar& grammar, const CountedFiles& files, unsigned num_threads) {
    WordCounts counts(grammar.dictionary.size());
    parallel_for(grammar.parts.size(), num_threads, [&](std::size_t index) {
        if (files.contain_any(grammar.parts[index].inos)) {
            add_part(grammar.parts[index], files, counts);
        }
    });
    return counts;
}

GrammarWordCounts::GrammarWordCounts(const std::vector<const Dictionary*>& dictionaries,
                                     const std::vector<std::span<const std::uint64_t>>& counts,
                                     unsigned num_threads)
    : words_(dictionaries) {
    std::uint64_t sum = 0;
    for (std::size_t source = 0; source < counts.size(); ++source) {
        if (counts[source].size() != dictionaries.at(source)->size()) {
            throw std::invalid_argument("the number of counts differs from the number of words");
        }
        for (const std::uint64_t count : counts[source]) {
            add_to(sum, std::min(count, kMaxTokens));
        }
    }
    if (sum == kMaxTokens) {
        throw std::invalid_argument("there are 2^62 words or more to count");
    }
    counts_.assign(words_.size(), 0);
    for (std::size_t source = 0; source < counts.size(); ++source) {
        const std::size_t size = counts[source].size();
        parallel_for(num_threads, num_threads, [&](std::size_t range) {
            const auto end = static_cast<std::uint32_t>(size * (range + 1) / num_threads);
            auto number = static_cast<std::uint32_t>(size * range / num_threads);
            CancellationPoint point;
            for (; number < end; ++number) {
                point();
                counts_[words_.rank(source, number)] += counts[source][number];
            }
        });
    }
}

}  // namespace gompfs

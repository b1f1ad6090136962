#include "grammar/traversal.h"

#include <algorithm>
#include <mutex>

#include "common/parallel.h"

namespace gompfs {
namespace {

std::vector<std::uint64_t> part_word_counts(const Part& part,
                                            const std::vector<std::uint64_t>& excluded_inos) {
    const auto num_words = static_cast<Symbol>(part.words.size());
    const Rules& rules = part.rules;
    std::vector<std::uint64_t> counts(num_words);
    std::vector<std::uint64_t> weights(rules.size());
    const auto visit = [&](Symbol symbol, std::uint64_t weight) {
        (symbol < num_words ? counts[symbol] : weights[symbol - num_words]) += weight;
    };
    const auto counted = [&](std::size_t file) -> std::uint64_t {
        return file < part.inos.size() &&
               !std::binary_search(excluded_inos.begin(), excluded_inos.end(), part.inos[file]);
    };
    std::size_t file = 0;
    std::uint64_t weight = counted(file);
    for (std::uint64_t at = 0; at < rules.starts[1]; ++at) {
        if (rules.symbols[at] == kSplitter) {
            weight = counted(++file);
        } else {
            visit(rules.symbols[at], weight);
        }
    }
    for (std::uint32_t rule = 1; rule < rules.size(); ++rule) {
        for (std::uint64_t at = rules.starts[rule]; at < rules.starts[rule + 1]; ++at) {
            visit(rules.symbols[at], weights[rule]);
        }
    }
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

std::vector<std::uint64_t> word_counts(const Grammar& grammar,
                                       const std::vector<std::uint64_t>& excluded_inos,
                                       unsigned num_threads) {
    std::vector<std::uint64_t> total(grammar.dictionary.size());
    std::mutex mutex;
    parallel_for(grammar.parts.size(), num_threads, [&](std::size_t index) {
        const Part& part = grammar.parts[index];
        const std::vector<std::uint64_t> counts = part_word_counts(part, excluded_inos);
        const std::lock_guard lock(mutex);
        for (std::size_t word = 0; word < counts.size(); ++word) {
            total[part.words[word]] += counts[word];
        }
    });
    return total;
}

}  // namespace gompfs

// Counts the words of parts; see parts_word_counts.h. Threads take one part after another. The
// counts of words that several parts use are added up with atomic operations.
#include "statistics/parts_word_counts.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/failures.h"
#include "parts/part_words.h"

namespace gompfs {
namespace {

// The ranges of a part's text that counted files have, by offset.
std::vector<WeightedRange> ranges_of(std::span<const TextExtent> extents,
                                     const CountedFiles& files) {
    std::vector<WeightedRange> ranges;
    for (const TextExtent& extent : extents) {
        if (ranges.empty() || ranges.back().offset != extent.offset) {
            ranges.push_back({extent.offset, extent.size, 0});
        } else if (ranges.back().size != extent.size) {
            throw std::invalid_argument("an extent of a file is not a piece of a part");
        }
        ranges.back().weight += files.contains(extent.ino);
    }
    return ranges;
}

// Words of parts without a head, by their bytes. The words of other parts may be among them,
// because only heads know which words are shared.
using LooseWords = std::map<std::string, std::uint64_t, std::less<>>;

void count_words_of_text(Bytes text, std::span<const WeightedRange> ranges,
                         const Tokenizer& tokenizer, LooseWords& counts) {
    const std::string_view all(reinterpret_cast<const char*>(text.data()), text.size());
    for (const WeightedRange& range : ranges) {
        tokenizer.for_each_word(all.substr(range.offset, range.size), [&](std::string_view word) {
            auto found = counts.find(word);
            if (found == counts.end()) {
                found = counts.emplace(word, 0).first;
            }
            found->second += range.weight;
        });
    }
}

// Moves the counts of loose words to the same words of a list.
void take_loose_words(LooseWords& loose, const TokenList& words, std::uint64_t* counts) {
    for (std::uint32_t number = 0; number < words.size() && !loose.empty(); ++number) {
        if (const auto found = loose.find(words[number]); found != loose.end()) {
            counts[number] += found->second;
            loose.erase(found);
        }
    }
}

}  // namespace

PartsWordCounts::PartsWordCounts(std::span<const StoredPart> parts,
                                 std::span<const TextExtent> extents, Bytes word_section,
                                 std::uint64_t max_word_bytes, const Tokenizer& tokenizer,
                                 const CountedFiles& files, unsigned num_threads)
    : section_(word_section.empty() ? WordSection() : WordSection(word_section, max_word_bytes)),
      local_words_(parts.size()) {
    const std::vector<std::span<const TextExtent>> of_part = split_by_part(extents, parts.size());
    std::vector<std::uint64_t> shared(section_.words().size());
    std::vector<std::vector<std::uint64_t>> local(parts.size());
    LooseWords loose;
    std::mutex mutex;  // protects loose
    parallel_for_all(parts.size(), num_threads, [&](std::size_t index) {
        const std::vector<WeightedRange> ranges = ranges_of(of_part[index], files);
        const StoredPart& part = parts[index];
        if (part.head.empty()) {
            const std::lock_guard lock(mutex);
            count_words_of_text(part.text, ranges, tokenizer, loose);
            return;
        }
        CountedPartWords counted = count_words_of_grammar(part.head, part.blocks, section_, ranges);
        const auto num_local = static_cast<std::ptrdiff_t>(counted.local_words.size());
        for (std::size_t word = 0; word < counted.global_words.size(); ++word) {
            std::atomic_ref(shared[counted.global_words[word]])
                .fetch_add(counted.counts[num_local + word], std::memory_order_relaxed);
        }
        local[index].assign(counted.counts.begin(), counted.counts.begin() + num_local);
        local_words_[index] = std::move(counted.local_words);
    });
    take_loose_words(loose, section_.words(), shared.data());
    for (std::size_t index = 0; index < parts.size(); ++index) {
        take_loose_words(loose, local_words_[index], local[index].data());
    }
    add_loose_words(loose, local);
    join_counts(std::move(shared), std::move(local));
}

// Words that are in no head become those of a further part.
void PartsWordCounts::add_loose_words(
    const std::map<std::string, std::uint64_t, std::less<>>& loose,
    std::vector<std::vector<std::uint64_t>>& local) {
    TokenList& words = local_words_.emplace_back();
    std::vector<std::uint64_t>& counts = local.emplace_back();
    for (const auto& [word, count] : loose) {
        words.append(word);
        counts.push_back(count);
    }
}

void PartsWordCounts::join_counts(std::vector<std::uint64_t> shared,
                                  std::vector<std::vector<std::uint64_t>> local) {
    counts_ = std::move(shared);
    for (std::vector<std::uint64_t>& counts : local) {
        first_numbers_.push_back(static_cast<std::uint32_t>(counts_.size()));
        if (counts.size() > std::numeric_limits<std::uint32_t>::max() - counts_.size()) {
            throw std::invalid_argument("it has too many words");
        }
        counts_.insert(counts_.end(), counts.begin(), counts.end());
        counts = {};
    }
    first_numbers_.push_back(static_cast<std::uint32_t>(counts_.size()));
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_) {
        total = std::min(total + std::min(count, kMaxTokens), kMaxTokens);
    }
    if (total >= kMaxTokens) {
        throw std::invalid_argument("there are 2^62 words or more to count");
    }
}

std::string_view PartsWordCounts::word(std::uint32_t number) const {
    if (number < section_.words().size()) {
        return section_.words()[number];
    }
    const auto part = static_cast<std::size_t>(
        std::upper_bound(first_numbers_.begin(), first_numbers_.end(), number) -
        first_numbers_.begin() - 1);
    return local_words_[part][number - first_numbers_[part]];
}

}  // namespace gompfs

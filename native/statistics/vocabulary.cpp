// Merges dictionaries into one order; see vocabulary.h. Dictionaries are merged one after another
// into a list of references (dictionary, number); then the ranks of each dictionary's words are
// found by walking both in parallel.
#include "statistics/vocabulary.h"

#include <algorithm>
#include <ranges>

#include "common/cancellation.h"

namespace gompfs {

Vocabulary::Vocabulary(std::vector<const Dictionary*> dictionaries)
    : dictionaries_(std::move(dictionaries)) {
    if (dictionaries_.size() == 1) {
        size_ = dictionaries_[0]->size();
        return;
    }
    for (std::uint32_t dictionary = 0; dictionary < dictionaries_.size(); ++dictionary) {
        entries_ = merge(entries_, dictionary);
    }
    size_ = static_cast<std::uint32_t>(entries_.size());
    for (const Dictionary* dictionary : dictionaries_) {
        std::vector<std::uint32_t>& ranks = ranks_.emplace_back(dictionary->size());
        std::uint32_t rank = 0;
        CancellationPoint point;
        for (std::uint32_t number = 0; number < ranks.size(); ++number) {
            point();
            while (word(rank) != dictionary->word(number)) {
                ++rank;
            }
            ranks[number] = rank;
        }
    }
}

std::vector<Vocabulary::Entry> Vocabulary::merge(const std::vector<Entry>& entries,
                                                 std::uint32_t dictionary) const {
    const Dictionary& words = *dictionaries_[dictionary];
    std::vector<Entry> merged;
    merged.reserve(entries.size() + words.size());
    std::uint32_t number = 0;
    CancellationPoint point;
    for (const Entry& entry : entries) {
        point();
        const std::string_view word = dictionaries_[entry.dictionary]->word(entry.number);
        for (; number < words.size() && words.word(number) < word; ++number) {
            merged.push_back({dictionary, number});
        }
        number += number < words.size() && words.word(number) == word;
        merged.push_back(entry);
    }
    for (; number < words.size(); ++number) {
        merged.push_back({dictionary, number});
    }
    return merged;
}

std::uint32_t Vocabulary::lower_bound(std::string_view text) const {
    const auto ranks = std::views::iota(std::uint32_t{0}, size_);
    return static_cast<std::uint32_t>(
        std::ranges::lower_bound(ranks, text, {}, [this](auto rank) { return word(rank); }) -
        ranks.begin());
}

}  // namespace gompfs

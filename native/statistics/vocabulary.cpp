// Merges dictionaries into one order; see vocabulary.h. Dictionaries are merged one after another
// into a list of references (dictionary, number); then the ranks of each dictionary's words are
// found by walking both in parallel.
#include "statistics/vocabulary.h"

#include "common/cancellation.h"

namespace gompfs {

Vocabulary::Vocabulary(std::vector<const Dictionary*> dictionaries)
    : dictionaries_(std::move(dictionaries)) {
    if (dictionaries_.size() == 1) {
        size_ = dictionaries_[0]->size();
        return;
    }
    for (std::uint32_t dictionary = 0; dictionary < dictionaries_.size(); ++dictionary) {
        places_ = merge(places_, dictionary);
    }
    size_ = static_cast<std::uint32_t>(places_.size());
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

std::vector<Vocabulary::Place> Vocabulary::merge(const std::vector<Place>& places,
                                                 std::uint32_t dictionary) const {
    const Dictionary& words = *dictionaries_[dictionary];
    std::vector<Place> merged;
    merged.reserve(places.size() + words.size());
    std::uint32_t number = 0;
    CancellationPoint point;
    for (const Place& place : places) {
        point();
        const std::string_view word = dictionaries_[place.dictionary]->word(place.number);
        for (; number < words.size() && words.word(number) < word; ++number) {
            merged.push_back({dictionary, number});
        }
        number += number < words.size() && words.word(number) == word;
        merged.push_back(place);
    }
    for (; number < words.size(); ++number) {
        merged.push_back({dictionary, number});
    }
    return merged;
}

std::uint32_t Vocabulary::lower_bound(std::string_view text) const {
    return count_before(size_, text, [this](std::uint32_t rank) { return word(rank); });
}

std::uint32_t Dictionary::lower_bound(std::string_view text) const {
    return count_before(size(), text, [this](std::uint32_t number) { return word(number); });
}

}  // namespace gompfs

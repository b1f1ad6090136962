// The words of several dictionaries in one order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace gompfs {

// The number of words word(0), word(1), ... that are before a text in byte order.
template <typename Word>
std::uint32_t count_before(std::uint32_t size, std::string_view text, Word&& word) {
    std::uint32_t low = 0;
    for (std::uint32_t high = size; low < high;) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (word(middle) < text) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// All words of several dictionaries in byte order, each once; a word's rank is its index here. The
// dictionaries must outlive the object.
class Vocabulary {
  public:
    explicit Vocabulary(std::vector<const Dictionary*> dictionaries);

    std::uint32_t size() const { return size_; }
    std::string_view word(std::uint32_t rank) const {
        return places_.empty()
                   ? dictionaries_[0]->word(rank)
                   : dictionaries_[places_[rank].dictionary]->word(places_[rank].number);
    }
    // The rank of a word, given by its number in one of the dictionaries.
    std::uint32_t rank(std::size_t dictionary, std::uint32_t number) const {
        return places_.empty() ? number : ranks_[dictionary][number];
    }
    // The ranks of a dictionary's words by number; null if ranks equal numbers.
    const std::vector<std::uint32_t>* ranks(std::size_t dictionary) const {
        return places_.empty() ? nullptr : &ranks_[dictionary];
    }
    // The number of words that are before a text in byte order.
    std::uint32_t lower_bound(std::string_view text) const;

  private:
    struct Place {
        std::uint32_t dictionary;
        std::uint32_t number;
    };

    std::vector<Place> merge(const std::vector<Place>& places, std::uint32_t dictionary) const;

    std::vector<const Dictionary*> dictionaries_;
    std::uint32_t size_ = 0;
    // Both are empty if there is one dictionary only, whose order is used.
    std::vector<Place> places_;
    std::vector<std::vector<std::uint32_t>> ranks_;
};

}  // namespace gompfs

// The words of several dictionaries in one order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/grammar.h"

namespace gompfs {

// All words of several dictionaries in byte order, each once; a word's rank is its index here. The
// dictionaries must outlive the object.
class Vocabulary {
  public:
    explicit Vocabulary(std::vector<const Dictionary*> dictionaries);

    std::uint32_t size() const { return size_; }
    std::string_view word(std::uint32_t rank) const {
        return entries_.empty()
                   ? dictionaries_[0]->word(rank)
                   : dictionaries_[entries_[rank].dictionary]->word(entries_[rank].number);
    }
    // The rank of a word, given by its number in one of the dictionaries.
    std::uint32_t rank(std::size_t dictionary, std::uint32_t number) const {
        return entries_.empty() ? number : ranks_[dictionary][number];
    }
    // The ranks of a dictionary's words by number; null if ranks equal numbers.
    const std::vector<std::uint32_t>* ranks(std::size_t dictionary) const {
        return entries_.empty() ? nullptr : &ranks_[dictionary];
    }
    // The number of words that are before a text in byte order.
    std::uint32_t lower_bound(std::string_view text) const;

  private:
    // A word of one of the dictionaries.
    struct Entry {
        std::uint32_t dictionary;
        std::uint32_t number;
    };

    std::vector<Entry> merge(const std::vector<Entry>& entries, std::uint32_t dictionary) const;

    std::vector<const Dictionary*> dictionaries_;
    std::uint32_t size_ = 0;
    // Both are empty if there is one dictionary only, whose order is used.
    std::vector<Entry> entries_;
    std::vector<std::vector<std::uint32_t>> ranks_;
};

}  // namespace gompfs

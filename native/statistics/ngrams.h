// Lists the n-grams of a part rule by rule, by means of head and tail buffers (TADOC section 4).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "statistics/corpus.h"

namespace gompfs {

// Up to ngram_length - 1 words, by rank in the corpus.
struct WordBuffer {
    std::array<std::uint32_t, kMaxNgramLength - 1> words{};
    std::uint32_t size = 0;

    // Appends a word. If there are more than `capacity` words, drops the first.
    void push(std::uint32_t word, unsigned capacity) {
        if (size < capacity) {
            words[size++] = word;
        } else if (capacity != 0) {
            std::copy(words.begin() + 1, words.begin() + capacity, words.begin());
            words[capacity - 1] = word;
        }
    }
};

// Makes n-grams from words that are read one after another.
class WordReader {
  public:
    explicit WordReader(const Corpus& corpus)
        : corpus_(corpus), capacity_(corpus.ngram_length - 1) {}

    // Reads a word that follows the words of `tail`, and updates `tail` to the last words. If there
    // are ngram_length words, calls take(key) for the n-gram that ends with this word.
    template <typename Take>
    void read_word(std::uint32_t word, WordBuffer& tail, Take&& take) const {
        if (tail.size == capacity_) {
            take(key(tail, word));
        }
        tail.push(word, capacity_);
    }

  protected:
    NgramKey key(const WordBuffer& before, std::uint32_t last) const {
        NgramKey key = 0;
        for (unsigned word = 0; word < capacity_; ++word) {
            key = key << corpus_.bits | corpus_.inner_rank(before.words[word]);
        }
        return key << corpus_.bits | last;
    }

    const Corpus& corpus_;
    const unsigned capacity_;  // n - 1
};

// Reads rules and files of a part element by element. Each rule has a head and a tail buffer: its
// first and its last ngram_length - 1 words, or all its words if it has fewer. An n-gram belongs to
// the lowest rule that contains it whole; there it spans at least two elements (or is one, for
// single words). Only the heads and tails of these elements are needed to list it, so no rule is
// expanded.
class NgramReader : public WordReader {
  public:
    NgramReader(const Corpus& corpus, std::size_t grammar, const Part& part);

    // Reads an element that follows the words of `tail`, and updates `tail` to the last words.
    // Calls take(key) for every n-gram that ends in the element and is not contained in it.
    template <typename Take>
    void read(Symbol symbol, WordBuffer& tail, Take&& take) const {
        if (symbol < num_words_) {
            read_word(rank(symbol), tail, take);
            return;
        }
        const std::uint32_t rule = symbol - num_words_;
        const WordBuffer& head = heads_[rule];
        for (std::uint32_t word = 0; word < head.size; ++word) {
            read_word(head.words[word], tail, take);
        }
        if (head.size == capacity_) {
            tail = tails_[rule];
        }
    }

    // The first ngram_length - 1 words of some elements, none of which is a splitter.
    WordBuffer head(const Symbol* begin, const Symbol* end) const;

  private:
    std::uint32_t rank(Symbol word) const { return corpus_.last_rank(grammar_, part_.words[word]); }

    const std::size_t grammar_;
    const Part& part_;
    const std::uint32_t num_words_;
    std::vector<WordBuffer> heads_, tails_;
};

}  // namespace gompfs

// The n-grams of some documents, for a look-up of those that occur in the files of an archive.
//
// Words are numbered in the order in which documents have them. An n-gram is known by a hash that
// rolls over the words (NgramWindow), and by the position of its first occurrence in the documents,
// whose words a look-up compares. So the result is exact, whatever the hashes are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/parallel.h"
#include "text/tokenizer.h"
#include "text/word_table.h"

namespace gompfs {

constexpr unsigned kMaxLongNgram = 255;
constexpr std::uint32_t kUnknown = 0xffffffff;

// The last words of a text, and the hash of the n-gram that they are: a polynomial of the words'
// hashes modulo 2^64.
class NgramWindow {
  public:
    explicit NgramWindow(unsigned length);

    void clear() {
        size_ = 0;
        hash_ = 0;
    }

    // Appends a word. Returns whether the window has as many words as an n-gram.
    bool push(std::uint32_t word, std::uint64_t hash_of_word) {
        hash_ = hash_ * kBase + hash_of_word;
        if (size_ == length_) {
            hash_ -= weighted_[static_cast<std::uint8_t>(end_ - length_)];
        } else {
            ++size_;
        }
        words_[end_] = word;
        weighted_[end_] = hash_of_word * weight_;
        ++end_;
        return size_ == length_;
    }

    unsigned size() const { return size_; }
    // The hash, once the window is full.
    std::uint64_t hash() const { return hash_; }
    // The word that `distance` words follow.
    std::uint32_t from_end(unsigned distance) const {
        return words_[static_cast<std::uint8_t>(end_ - 1 - distance)];
    }

  private:
    static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15u;

    const unsigned length_;
    std::uint64_t weight_ = 1;  // of a word that leaves the window
    std::uint64_t hash_ = 0;
    unsigned size_ = 0;
    std::uint8_t end_ = 0;  // the arrays are rings
    std::array<std::uint32_t, 256> words_;
    std::array<std::uint64_t, 256> weighted_;
};
static_assert(kMaxLongNgram < 256);

class NgramSet {
  public:
    // Throws std::invalid_argument unless 1 <= length <= kMaxLongNgram.
    explicit NgramSet(unsigned length);

    // Both add a document. They throw std::length_error if all documents have 2^31 words or more.
    void add_text(std::string_view text, const Tokenizer& tokenizer);
    void add_words(std::span<const std::string_view> words);
    // Finds the n-grams. After the last document, and before what follows.
    void finish();

    unsigned length() const { return length_; }
    std::uint32_t num_words() const { return static_cast<std::uint32_t>(word_hashes_.size()); }
    std::uint32_t num_ngrams() const { return static_cast<std::uint32_t>(firsts_.size()); }
    std::uint32_t num_documents() const {
        return static_cast<std::uint32_t>(document_starts_.size() - 1);
    }
    // The different n-grams of a document, and the documents of an n-gram.
    std::span<const std::uint32_t> ngrams_of(std::uint32_t document) const {
        return std::span(ngrams_).subspan(ngram_starts_[document],
                                          ngram_starts_[document + 1] - ngram_starts_[document]);
    }
    std::span<const std::uint32_t> documents_of(std::uint32_t ngram) const {
        return std::span(documents_)
            .subspan(of_ngram_starts_[ngram],
                     of_ngram_starts_[ngram + 1] - of_ngram_starts_[ngram]);
    }

    // The number of a word; kUnknown if no document has it.
    std::uint32_t word(std::string_view text) const { return table_.find(WordKey(text)); }
    std::uint64_t hash_of_word(std::uint32_t word) const { return word_hashes_[word]; }
    // The number of the n-gram in a full window; kUnknown if no document has it.
    std::uint32_t find(const NgramWindow& window) const {
        const std::uint64_t bit = window.hash() >> filter_shift_;
        return filter_[bit / 64] >> bit % 64 & 1 ? find_in_slots(window) : kUnknown;
    }
    // The numbers of the words text(0), ... text(count - 1), or kUnknown.
    template <typename Text>
    std::vector<std::uint32_t> numbers_of(std::uint32_t count, unsigned num_threads,
                                          Text&& text) const;

    // Whether there are so few n-grams that may_occur takes less time than to look for them.
    bool is_small() const { return firsts_.size() <= kFewNgrams; }
    // Whether all words of any n-gram are among some words, given by number or kUnknown. True
    // without a look if the set is not small.
    bool may_occur(std::span<const std::uint32_t> words) const;

  private:
    static constexpr std::size_t kFewNgrams = 4096;

    struct Slot {
        std::uint32_t tag;  // of the hash
        std::uint32_t number = kUnknown;
    };

    void add(std::string_view word);
    void end_document();
    void number_ngrams();
    void list_documents();
    bool equals(const NgramWindow& window, std::uint32_t number) const;
    std::uint32_t find_in_slots(const NgramWindow& window) const;
    std::uint32_t find_or_add(const NgramWindow& window, std::uint32_t first);

    const unsigned length_;
    std::deque<std::string> words_;  // whose bytes the table uses
    WordTable table_;
    std::vector<std::uint64_t> word_hashes_;
    std::vector<std::uint32_t> text_;  // the words of all documents
    std::vector<std::uint32_t> document_starts_{0};
    std::vector<std::uint32_t> firsts_;  // by n-gram: the position of its first word in text_
    std::vector<Slot> slots_;
    unsigned slot_shift_ = 63, filter_shift_ = 63;
    std::vector<std::uint64_t> filter_;  // a bit for hashes of n-grams
    std::vector<std::uint32_t> ngrams_, ngram_starts_{0}, documents_, of_ngram_starts_;
};

template <typename Text>
std::vector<std::uint32_t> NgramSet::numbers_of(std::uint32_t count, unsigned num_threads,
                                                Text&& text) const {
    constexpr std::size_t kWordsAtOnce = 1 << 14;
    std::vector<std::uint32_t> numbers(count);
    parallel_for(count / kWordsAtOnce + 1, num_threads, [&](std::size_t index) {
        const std::size_t end = std::min<std::size_t>(count, (index + 1) * kWordsAtOnce);
        for (std::size_t number = index * kWordsAtOnce; number < end; ++number) {
            numbers[number] = word(text(static_cast<std::uint32_t>(number)));
        }
    });
    return numbers;
}

}  // namespace gompfs

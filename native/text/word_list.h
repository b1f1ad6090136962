// Sorted lists of words: stored compactly, read from front to back, merged in parallel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar.h"

namespace gompfs {

// Words in byte order. Each word is stored as the length of the prefix shared with the word before
// (one byte), the length of its suffix (a variable-length number), and the suffix. Every
// kRestartInterval-th word shares nothing, and its offset is recorded.
class WordList {
  public:
    static constexpr std::uint32_t kRestartInterval = 256;
    static constexpr std::size_t kMaxSharedPrefix = 255;

    void append(std::string_view word);
    std::uint32_t size() const { return size_; }

    // Returns the index of the last restart whose word is below `from`, 0 if there is none.
    std::uint32_t restart_before(std::string_view from) const;

  private:
    friend class WordCursor;

    std::string_view restart_word(std::size_t restart) const;

    std::vector<std::uint8_t> bytes_;
    std::vector<std::uint64_t> restarts_;
    std::string last_;
    std::uint32_t size_ = 0;
};

// Reads a list from front to back. Starts at or before the first word that is not below `from`.
class WordCursor {
  public:
    WordCursor(const WordList& list, std::string_view from);

    bool next();  // moves to the next word; false if there is none
    std::string_view word() const { return word_; }
    std::uint64_t prefix() const { return prefix_; }    // see word_prefix()
    std::uint32_t index() const { return index_ - 1; }  // of the word in the list

  private:
    const WordList* list_;
    const std::uint8_t* next_;
    std::uint32_t index_;
    std::string word_;
    std::uint64_t prefix_ = 0;
};

// Consecutive words of a dictionary. Each is the length of the prefix that it shares with the word
// before, the length of its suffix (a variable-length number), and the suffix.
struct DictionaryRange {
    std::uint32_t num_words = 0;
    std::vector<std::uint8_t> shared_lengths;
    std::vector<std::uint8_t> suffix_lengths;
    std::vector<std::uint8_t> suffixes;
};

// Merges the lists into one dictionary. ranks[list][index] becomes the number of the list's word in
// the dictionary.
std::vector<DictionaryRange> merge_word_lists(const std::vector<WordList>& lists,
                                              unsigned num_threads,
                                              std::vector<std::vector<std::uint32_t>>& ranks);

// Returns all words of the ranges of a dictionary.
Dictionary expand_ranges(std::vector<DictionaryRange> ranges, unsigned num_threads);

}  // namespace gompfs

// The grammars of an archive's segments as one text: words and files are numbered across them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace gompfs {

constexpr std::uint32_t kLeftOut = 0xffffffff;
constexpr unsigned kMaxWordsOfNgram = 5;

// An n-gram as a number: the numbers of its words, the first one highest. Keys compare like the
// n-grams as text, their words joined by spaces.
using NgramKey = unsigned __int128;

struct Corpus {
    // A file of the statistics; they are given in the order in which reports list them.
    struct File {
        std::uint64_t ino;
        std::string path;
    };

    // Files whose inodes are not among `files` are left out. Throws std::invalid_argument where
    // there are too many words to put n of them into a key, or for counts to fit into 64 bits.
    Corpus(std::vector<const Grammar*> grammars, std::vector<File> files, unsigned n);

    // The number of a file; kLeftOut for one that is left out.
    std::uint32_t file_number(std::uint64_t ino) const;
    // What a word (by its place in the dictionary of a grammar) adds to a key as its last word, or
    // before others.
    std::uint32_t last_rank(std::size_t grammar, std::uint32_t word) const {
        return words.rank(grammar, word);
    }
    std::uint32_t inner_rank(std::uint32_t rank) const {
        return inner_ranks.empty() ? rank : inner_ranks[rank];
    }
    // inner_rank by rank; empty where both are the same.
    const std::vector<std::uint32_t>& ranks_before_others() const { return inner_ranks; }
    void append_ngram(std::string& text, NgramKey key) const;

    std::vector<const Grammar*> grammars;
    std::vector<File> files;
    unsigned n;
    unsigned bits;     // of a word in a key
    Vocabulary words;  // of all grammars

  private:
    void check_num_tokens() const;
    void rank_inner_words();
    bool is_before_inside(std::uint32_t left, std::uint32_t right) const;

    // A word with a byte below the space comes before the shorter word that it begins with, as soon
    // as a space follows both. Empty where there is no such word.
    std::vector<std::uint32_t> inner_ranks, words_of_inner_ranks;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> files_by_ino_;
};

}  // namespace gompfs

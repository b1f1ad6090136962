// The grammars of all segments as one text: words and files are numbered across segments.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "statistics/vocabulary.h"
#include "text/grammar.h"

namespace gompfs {

constexpr std::uint32_t kLeftOut = 0xffffffff;
constexpr unsigned kMaxNgramLength = 5;

// An n-gram as a number: the ranks of its words, the first word in the highest bits. Keys sort as
// the texts of the n-grams do, in which spaces join the words.
using NgramKey = unsigned __int128;

struct Corpus {
    // A file of the statistics. Files are given in the order in which reports list them.
    struct File {
        std::uint64_t ino;
        std::string path;
    };

    // Files whose inodes are not among `files` are left out. Throws std::invalid_argument if
    // ngram_length words do not fit into a key, or if counts might not fit into 64 bits.
    Corpus(std::vector<const Grammar*> grammars, std::vector<File> files, unsigned ngram_length);
    // The same words, which both share, with other files and n-grams of another length. The parts
    // of the grammars may have been dropped. Throws std::invalid_argument likewise.
    Corpus(const Corpus& of_words, std::vector<File> files, unsigned ngram_length);

    // The number of a file; kLeftOut if it is left out.
    std::uint32_t file_number(std::uint64_t ino) const;
    // The rank that a word (a number in the dictionary of a grammar) has in a key as the last word;
    // inner_rank gives the rank of a word that other words follow.
    std::uint32_t last_rank(std::size_t grammar, std::uint32_t word) const {
        return words.rank(grammar, word);
    }
    std::uint32_t inner_rank(std::uint32_t rank) const {
        return inner_ranks.empty() ? rank : inner_ranks[rank];
    }
    // inner_rank by rank; empty if both are equal.
    const std::vector<std::uint32_t>& ranks_before_others() const { return inner_ranks; }
    void append_ngram(std::string& text, NgramKey key) const;
    // Items of a term vector: tab, count, space and word for each word, given by its rank.
    std::string items(std::span<const std::uint64_t> ranks,
                      std::span<const std::uint64_t> counts) const;
    // Lines of a path, tab and count for each file, given by its number.
    std::string file_lines(std::span<const std::uint64_t> numbers,
                           std::span<const std::uint64_t> counts) const;

    std::shared_ptr<const Vocabulary> vocabulary;  // that of `words`
    std::vector<const Grammar*> grammars;
    std::vector<File> files;
    unsigned ngram_length;
    unsigned bits;            // of a word in a key
    const Vocabulary& words;  // of all grammars

  private:
    Corpus(std::shared_ptr<const Vocabulary> of_words, std::vector<const Grammar*> grammars,
           std::vector<File> files, unsigned ngram_length);
    void check_num_tokens() const;
    void rank_inner_words();
    bool is_before_inside(std::uint32_t left, std::uint32_t right) const;

    // Ranks for words that are followed by a space. A word that contains a byte below the space
    // sorts before the shorter word that it begins with, once a space follows both. Empty if there
    // is no such word.
    std::vector<std::uint32_t> inner_ranks, words_of_inner_ranks;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> files_by_ino_;
};

}  // namespace gompfs

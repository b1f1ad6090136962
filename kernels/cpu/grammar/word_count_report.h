// Word count and sort as the text of virtual files.
#pragma once

#include <span>
#include <vector>

#include "grammar/report.h"
#include "grammar/traversal.h"
#include "grammar/vocabulary.h"

namespace gompfs {

// How often the words of a dictionary occur, by their numbers.
struct CountedWords {
    const Dictionary* dictionary;
    std::span<const std::uint64_t> counts;
};

// Lines `word<TAB>count` of all words that occur, counts of equal words added up: in byte order of
// the words, or by falling count and then word. Its memory: 4 bytes for each word, 20 where there
// are several sources.
class WordCountReport : public Report {
  public:
    // `top` above 0 is how many lines there are at most. The sources must stay.
    WordCountReport(const std::vector<CountedWords>& sources, bool by_count, std::uint64_t top,
                    unsigned num_threads);

    std::size_t num_pieces() const override { return piece_starts_.size() - 1; }
    std::string piece(std::size_t index) const override;
    std::optional<std::uint64_t> size() const override { return size_; }

  private:
    void add_up(const std::vector<CountedWords>& sources, unsigned num_threads);
    void choose_order(bool by_count, unsigned num_threads);
    void cut_pieces(unsigned num_threads);
    std::uint64_t line_size(std::uint32_t rank) const;

    Vocabulary words_;
    WordCounts sums_;                        // of several sources
    std::span<const std::uint64_t> counts_;  // by rank
    LargeVector<std::uint32_t> lines_;       // ranks of their words
    std::vector<std::size_t> piece_starts_{0};
    std::uint64_t size_ = 0;
};

}  // namespace gompfs

// The reports word count and sort, as the text of virtual files.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "statistics/report.h"
#include "statistics/vocabulary.h"
#include "statistics/word_counts.h"

namespace gompfs {

// The counts of a dictionary's words, by number. The dictionary of a section is expanded only when
// it is needed.
struct CountedWords {
    const Dictionary* dictionary = nullptr;
    const CountedSection* section = nullptr;  // used instead of `dictionary`
    std::span<const std::uint64_t> counts;
};

// Lines `word<TAB>count` of all words that occur; counts of equal words of several sources are
// added. The lines are in byte order of the words, or by falling count and then by word. Memory: 4
// bytes per word, 20 with several sources.
class WordCountReport : public Report {
  public:
    // If `top` is above 0, there are at most that many lines. The sources must outlive the report.
    // Throws std::invalid_argument if a source does not have a count for each word, or if the sum
    // of the counts of several sources could exceed 64 bits.
    WordCountReport(std::vector<CountedWords> sources, bool by_count, std::uint64_t top,
                    unsigned num_threads);

    std::size_t num_pieces() const override { return piece_starts().size() - 1; }
    bool has_piece(std::size_t index) const override {
        return index == 0 ? !lines_.empty() : index < num_pieces();
    }
    std::string piece(std::size_t index) const override;
    std::optional<std::uint64_t> size() const override { return size_; }

  private:
    void check_sizes() const;
    const CountedSection* only_section() const;
    std::vector<const Dictionary*> dictionaries() const;
    const std::vector<std::size_t>& piece_starts() const;
    void check_counts() const;
    void add_up();
    void choose_order(bool by_count);
    std::uint64_t measure(const CountedSection& section) const;
    std::uint64_t cut_pieces() const;
    std::uint64_t line_size(std::uint32_t rank) const;
    std::string first_piece(const CountedSection& section) const;
    void append_line(std::string& text, std::string_view word, std::uint32_t rank) const;

    const std::vector<CountedWords> sources_;
    const unsigned num_threads_;
    WordCounts sums_;                        // of several sources
    std::span<const std::uint64_t> counts_;  // by rank
    LargeVector<std::uint32_t> lines_;       // ranks of their words
    std::uint64_t size_ = 0;
    // For the report of a single section: computed when a piece other than the first is needed.
    mutable std::once_flag are_cut_;
    mutable std::optional<Vocabulary> words_;
    mutable std::vector<std::size_t> piece_starts_{0};
};

}  // namespace gompfs

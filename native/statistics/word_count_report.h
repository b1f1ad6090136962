// The reports word count and sort, as the text of virtual files.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/large_vector.h"
#include "statistics/counted_words.h"
#include "statistics/report.h"

namespace gompfs {

// Lines `word<TAB>count` of all words that occur. The lines are in byte order of the words, or by
// falling count and then by word. Words are sorted when their lines are needed, so the first lines
// by count come before most words are sorted.
class WordCountReport : public Report {
  public:
    // If `top` is above 0, there are at most that many lines.
    WordCountReport(std::shared_ptr<const CountedWords> words, bool by_count, std::uint64_t top,
                    unsigned num_threads);

    std::size_t num_pieces() const override { return piece_starts().size() - 1; }
    bool has_piece(std::size_t index) const override {
        return index == 0 ? !lines_.empty() : index < num_pieces();
    }
    std::string piece(std::size_t index) const override;
    std::optional<std::uint64_t> size() const override;

  private:
    // A range of lines whose words have equal counts, or any counts with the order by word.
    struct Group {
        std::size_t begin, end;
    };

    void group_lines(bool by_count);
    std::vector<std::size_t> sort_by_class(bool by_count);
    void sort_group(std::size_t group) const;
    void sort_lines(std::span<std::uint32_t> lines) const;
    const std::vector<std::size_t>& piece_starts() const;
    std::string first_piece() const;
    std::size_t line_size(std::uint32_t word) const;
    void append_line(std::string& text, std::uint32_t word) const;

    const std::shared_ptr<const CountedWords> words_;
    const std::uint64_t top_;
    const unsigned num_threads_;
    std::vector<Group> groups_;
    mutable LargeVector<std::uint32_t> lines_;  // numbers of words
    // Protects sorting: a group is sorted once, when its lines are needed.
    mutable std::mutex mutex_;
    mutable std::size_t num_sorted_ = 0;  // groups
    mutable std::vector<std::size_t> piece_starts_;
};

}  // namespace gompfs

// A range of a file's words, read from the grammar alone (random access of TADOC).
#pragma once

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "statistics/report.h"

namespace gompfs {

// The words [begin, end) of a file, each on a line. The number of words that each rule stands for
// tells which symbol to descend into, so words before the range are not expanded.
class WordsReport : public Report {
  public:
    // The grammars must outlive the report. An `end` after the last word means the last word.
    WordsReport(const std::vector<const Grammar*>& grammars, std::uint64_t ino, std::uint64_t begin,
                std::uint64_t end);

    std::size_t num_pieces() const override {
        return (end_ - begin_ + kWordsOfPiece - 1) / kWordsOfPiece;
    }
    std::string piece(std::size_t index) const override;

  private:
    static constexpr std::uint64_t kWordsOfPiece = 1 << 16;

    // The symbols of the file in the root of one part.
    struct Stretch {
        const Grammar* grammar;
        const Part* part;
        std::uint64_t first_symbol;
        std::vector<std::uint64_t> starts;  // of each symbol, in words of the file; then the end
        std::size_t sizes;                  // index in sizes_ of the part's rule sizes
    };
    struct Range {
        std::uint64_t at, end;  // in the symbols of the part
    };

    void add_stretches(const Grammar& grammar, const Part& part, std::uint64_t ino);
    void append_words(std::string& text, const Stretch& stretch, std::uint64_t begin,
                      std::uint64_t end) const;

    std::vector<Stretch> stretches_;
    std::vector<std::vector<std::uint64_t>> sizes_;
    std::uint64_t begin_, end_;
};

}  // namespace gompfs

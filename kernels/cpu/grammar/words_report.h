// Some words of a file in a row, from the grammar alone.
#pragma once

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/report.h"

namespace gompfs {

// The words of a file from number `begin` up to `end`, each on a line. How many words each rule
// stands for tells where to go down: what comes before is not expanded (TADOC: random access).
class WordsReport : public Report {
  public:
    // The grammars must stay. An `end` behind the last word stands for it.
    WordsReport(const std::vector<const Grammar*>& grammars, std::uint64_t ino, std::uint64_t begin,
                std::uint64_t end);

    std::size_t num_pieces() const override {
        return (end_ - begin_ + kWordsOfPiece - 1) / kWordsOfPiece;
    }
    std::string piece(std::size_t index) const override;

  private:
    static constexpr std::uint64_t kWordsOfPiece = 1 << 16;

    // What the root of a part holds of the file.
    struct Stretch {
        const Grammar* grammar;
        const Part* part;
        std::uint64_t first_symbol;
        std::vector<std::uint64_t> starts;  // of each symbol, in words of the file; its end
        std::size_t sizes;                  // of the part's rules, in sizes_
    };
    struct Place {
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

// Compares the text of files with a grammar, word by word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/tokenizer.h"

namespace gompfs {

// The first difference between a text and a grammar: the index of the word (from 0), the word of
// the text and the word of the grammar. A word is missing if that side has ended.
struct Difference {
    std::uint64_t number = 0;
    std::optional<std::string> in_text, in_grammar;
};

// Expands a grammar while the text of one file after another is added in pieces of any size. The
// packer's tokenizer cuts the text into words; each word must be the next word of the grammar.
// Memory: little more than the largest word, and 8 bytes per file of the grammar.
class TextCheck {
  public:
    // A file in a part of the grammar: the number of the part, and the index of the file in it.
    using PieceOfFile = std::pair<std::uint32_t, std::uint32_t>;

    // Without a grammar, files are expected to have no words. The grammar must outlive the object,
    // and each of its rules except the roots must have at least two symbols (see has_short_rules).
    TextCheck(const Grammar* grammar, Tokenizer tokenizer);

    // Starts a file, which has these pieces in the grammar. Throws std::invalid_argument if the
    // grammar has no such piece.
    void begin(std::vector<PieceOfFile> pieces);
    void add(std::string_view text);
    std::optional<Difference> end();

  private:
    struct Level {
        std::uint64_t at, end;  // in the symbols of the part
    };

    void compare(std::string_view text);
    std::optional<std::string_view> next_word();
    bool enter_piece();

    const Grammar* const grammar_;
    const Tokenizer tokenizer_;
    std::vector<std::vector<std::uint64_t>> splitters_;  // of each part: indexes in its root
    std::vector<PieceOfFile> pieces_;
    std::size_t next_piece_ = 0;
    const Part* part_ = nullptr;
    std::vector<Level> levels_;
    std::string rest_;  // end of the text so far; a word may continue after it
    std::uint64_t number_ = 0;
    std::optional<Difference> difference_;
};

// Whether a rule other than a root has fewer than two symbols. With two or more symbols per rule,
// expanding rules takes fewer steps than the words that they stand for.
bool has_short_rules(const Grammar& grammar);

}  // namespace gompfs

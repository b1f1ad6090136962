// Compares the text of files with what a grammar says of them, word by word.
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

// The first place where a text and a grammar differ: the number of the word there (from 0), the
// word that the text has there and that of the grammar; none where that one has ended.
struct Difference {
    std::uint64_t number = 0;
    std::optional<std::string> in_text, in_grammar;
};

// Expands a grammar while the text of one file after another comes by, in pieces of any size. The
// text is cut into words by the tokenizer of the packer, and each word must be the next one of the
// grammar. Memory: a bit of the largest word, and 8 bytes for each file of the grammar.
class TextCheck {
  public:
    // A file as a part of the grammar has it: the number of the part, and its place there.
    using PieceOfFile = std::pair<std::uint32_t, std::uint32_t>;

    // Without a grammar, files can be asked for a first word. The grammar must stay, and each of
    // its rules but the roots must have two symbols or more: see has_short_rules.
    TextCheck(const Grammar* grammar, std::vector<std::uint8_t> word_characters);

    // Starts with a file, which has these pieces in the grammar. Throws std::invalid_argument where
    // the grammar has no such piece.
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
    std::vector<std::vector<std::uint64_t>> splitters_;  // of each part, their places in the root
    std::vector<PieceOfFile> pieces_;
    std::size_t next_piece_ = 0;
    const Part* part_ = nullptr;
    std::vector<Level> levels_;
    std::string rest_;  // of the text so far: a word may go on behind it
    std::uint64_t number_ = 0;
    std::optional<Difference> difference_;
};

// Whether a rule other than a root has fewer than two symbols. Rules of two or more stand for more
// words than it takes steps to expand them.
bool has_short_rules(const Grammar& grammar);

}  // namespace gompfs

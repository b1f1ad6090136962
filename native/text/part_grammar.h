// The grammar of one part of text, before it is known which of its tokens other parts use as well.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/recursive_pairing.h"
#include "text/symbols.h"
#include "text/tokenizer.h"
#include "text/word_section.h"
#include "text/word_table.h"

namespace gompfs {

// Symbols of the rules below tokens.size() are tokens, in the order of their first occurrence.
struct PartGrammar {
    TokenList tokens;
    std::vector<std::uint8_t> are_words;  // by token; the others are separators
    Rules rules;
    std::uint32_t text_size = 0;
    std::vector<std::uint64_t> block_xxh3;  // of the text, cut into blocks
};

// The text that a grammar was built from.
std::string text_of(const PartGrammar& part);

// Whether every token is short enough for a symbol of a head.
bool has_short_tokens(const PartGrammar& part);

// Builds one part after another, and keeps its memory. Each thread needs its own.
class PartGrammarBuilder {
  public:
    PartGrammarBuilder(const Tokenizer& tokenizer, std::uint32_t block_size)
        : tokenizer_(tokenizer), block_size_(block_size) {}

    // Files end at file_ends; the last file may continue after the text.
    PartGrammar build(std::string_view text, std::span<const std::size_t> file_ends);

  private:
    void add_piece(std::string_view text);
    void add_token(std::string_view token, bool is_word);

    const Tokenizer& tokenizer_;
    const std::uint32_t block_size_;
    WordTable table_{1 << 14};
    std::vector<std::uint8_t> are_words_;
    std::vector<Symbol> symbols_;
    RecursivePairing pairing_;
};

}  // namespace gompfs

// Builds one part of a grammar: numbers the words of its text, and makes rules of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/repair.h"
#include "grammar/text_collector.h"
#include "grammar/tokenizer.h"
#include "grammar/word_list.h"
#include "grammar/word_table.h"

namespace gompfs {

// A part whose words are numbers in its own word list.
struct BuiltPart {
    PartHead head;
    WordList words;
    std::vector<std::uint8_t> rules;  // as the section stores them
    Rules root;                       // of the kind `none`, instead of `rules`
};

// Sets the words and the rules of a part. Word i of the rules is words[i]; sorted_words has these
// numbers in byte order of the words.
void set_words_and_rules(BuiltPart& part, BuilderKind builder,
                         const std::vector<std::string_view>& words,
                         const std::vector<std::uint32_t>& sorted_words, Rules rules);

// The numbers of the words, in byte order of the words.
std::vector<std::uint32_t> sort_words(const std::vector<std::string_view>& words);

// Builds one part after another, and keeps its memory. Each thread needs its own.
class PartBuilder {
  public:
    PartBuilder(BuilderKind builder, const Tokenizer& tokenizer)
        : builder_(builder), tokenizer_(tokenizer) {}

    BuiltPart build(const PartText& text);

  private:
    void tokenize(std::string_view text);
    Rules build_rules();

    const BuilderKind builder_;
    const Tokenizer& tokenizer_;
    // The words of the text, numbered in the order of first occurrence, and the text as these
    // numbers.
    WordTable words_{1 << 16};
    std::vector<Symbol> symbols_;
    Repair repair_;
};

}  // namespace gompfs

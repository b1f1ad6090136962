// Compares the tokens of a segment with its word rule. Decoders of blocks do not: to them, words
// and separators are bytes. Statistics count the words of heads without making the text, so they
// must be the words that the text would have.
#pragma once

#include "grammar/tokenizer.h"
#include "parts/head.h"
#include "parts/word_section.h"

namespace gompfs {

// Both throw std::invalid_argument if a word is not exactly one word of the rule, or if a separator
// has a word in it.
void check_tokens(const WordSection& section, const Tokenizer& tokenizer, unsigned num_threads = 1);
void check_tokens(const Head& head, const Tokenizer& tokenizer);

}  // namespace gompfs

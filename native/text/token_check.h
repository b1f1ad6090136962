// Compares the tokens of a segment with its word rule. Decoders of blocks do not: to them, words
// and separators are bytes. Statistics count the words of heads without making the text, so they
// must be the words that the text would have. A search concludes from the words of a part what its
// text does not contain, so it looks at them too.
#pragma once

#include <cstddef>

#include "common/bytes.h"
#include "text/head.h"
#include "text/tokenizer.h"
#include "text/word_rule.h"
#include "text/word_section.h"

namespace gompfs {

// These throw std::invalid_argument if a word is not exactly one word of the rule, or if a
// separator has a word in it.
void check_tokens(const WordSection& section, const Tokenizer& tokenizer, unsigned num_threads = 1);
void check_tokens(const Head& head, const Tokenizer& tokenizer);

// Whether each byte of words may be in a word, and none of separators must be: no ASCII character
// is on the wrong side. That is the whole rule but for `letters`, where other characters may be on
// either side; no word may begin inside of one.
bool have_right_bytes(const WordSection& section, WordRule rule, unsigned num_threads);
// The same for num_words words with a space after each, and the bytes of separators.
bool have_right_bytes(Bytes words, std::size_t num_words, Bytes separators, WordRule rule);

// Whether each ASCII character of words may be in a word, and each of separators may be in a
// separator. Words may be without the bytes that they share with the words before.
bool have_right_ascii(const WordSection& section, WordRule rule, unsigned num_threads);
bool have_right_ascii(Bytes words, std::size_t num_words, Bytes separators, WordRule rule);

}  // namespace gompfs

// The rules of one part without its separators, and the pieces of files that its root consists of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/symbols.h"
#include "grammar/tokenizer.h"
#include "parts/head.h"
#include "parts/word_section.h"

namespace gompfs {

// A file, or a piece of one: a range of the part's text, and of the symbols of its root.
struct RootPiece {
    std::uint64_t offset, size;
    std::size_t begin, end;
    bool goes_on;  // whether the file continues in the next part
};

// Words are numbered: local words first, then global ones. Symbols as in Rules, but rule r is
// num_words + r with r from 1 on, and the root is apart.
struct PartWords {
    TokenList local_words;                    // in byte order
    std::vector<std::uint32_t> global_words;  // numbers in the word section
    std::vector<std::vector<Symbol>> rules;   // rules[0] is not used; a rule uses higher ones
    std::vector<Symbol> root;                 // without splitters
    std::vector<RootPiece> pieces;

    std::uint32_t num_words() const {
        return static_cast<std::uint32_t>(local_words.size() + global_words.size());
    }
};

// Takes a part apart. Throws std::invalid_argument if it is damaged.
PartWords words_of_grammar(Bytes head, std::span<const Bytes> blocks, const WordSection& words);

// A range of a part's text that files have, and how many.
struct WeightedRange {
    std::uint64_t offset, size, weight;
};

// The words of a text, without rules: each range is a piece. Ranges are in the order of their
// offsets; bytes between them belong to no file. Throws std::invalid_argument if they overlap or
// are not in the text.
PartWords words_of_text(std::string_view text, std::span<const WeightedRange> ranges,
                        const Tokenizer& tokenizer);

// How often words occur in a part: local words, and global ones by their numbers.
struct CountedPartWords {
    TokenList local_words;
    std::vector<std::uint32_t> global_words;
    std::vector<std::uint64_t> counts;  // of the local words, then of the global ones
};

// Counts the words of a part without making its grammar. Ranges are in the order of their offsets.
// Throws std::invalid_argument if the part is damaged, or a range is no piece of it.
CountedPartWords count_words_of_grammar(Bytes head, std::span<const Bytes> blocks,
                                        const WordSection& words,
                                        std::span<const WeightedRange> ranges);

}  // namespace gompfs

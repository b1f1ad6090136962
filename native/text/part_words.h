// The rules of one part without its separators, and the pieces of files that its root consists of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/part_ends.h"
#include "text/stored_parts.h"
#include "text/symbols.h"
#include "text/tokenizer.h"
#include "text/word_section.h"

namespace gompfs {

// A range of a part's text that files have, and how many.
struct WeightedRange {
    std::uint64_t offset, size, weight;
};

// A file, or a piece of one: a range of the part's text, and of the symbols of its root.
struct RootPiece {
    std::uint64_t offset, size;
    std::size_t begin, end;
    bool goes_on;  // whether the file continues in the next part
};

// Words are numbered: local words first, then global ones. Symbols as in Rules, with num_words + r
// for rule r.
struct PartWords {
    TokenList local_words;                    // in byte order
    std::vector<std::uint32_t> global_words;  // numbers in the word section
    Rules rules;                              // rule 0 is empty
    std::vector<Symbol> root;                 // without splitters
    std::vector<RootPiece> pieces;
    PartEnds ends;

    std::uint32_t num_words() const {
        return static_cast<std::uint32_t>(local_words.size() + global_words.size());
    }
};

// Takes a part with a head apart. Throws std::invalid_argument if it is damaged, or if its words
// are not those that its text has. The tokens of the section must have been checked.
PartWords words_of_grammar(const StoredPart& part, const WordSection& section,
                           const Tokenizer& tokenizer);

// The words of the files and pieces in a text, without rules. Throws std::invalid_argument if a
// range is not inside the text, or overlaps another.
PartWords words_of_text(std::string_view text, std::span<const WeightedRange> ranges,
                        const Tokenizer& tokenizer);
PartEnds ends_of_text(std::string_view text, const Tokenizer& tokenizer);

// How often words occur in a part: local words, and global ones by their numbers.
struct CountedPartWords {
    TokenList local_words;
    std::vector<std::uint32_t> global_words;
    std::vector<std::uint64_t> counts;  // of the local words, then of the global ones
    PartEnds ends;
};

// Counts the words of a part with a head, without making its grammar. Ranges are in the order of
// their offsets. Throws what words_of_grammar throws, and std::invalid_argument if a range is no
// piece of the part.
CountedPartWords count_words_of_grammar(const StoredPart& part, const WordSection& section,
                                        const Tokenizer& tokenizer,
                                        std::span<const WeightedRange> ranges);

}  // namespace gompfs

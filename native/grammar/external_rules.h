// Rules that come from outside the C++ core (a GPU): the text of several parts goes out, their
// words and rules come back and are checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/part_builder.h"
#include "grammar/symbols.h"
#include "grammar/text_collector.h"

namespace gompfs {

// Parts whose rules are built outside; their texts follow each other.
struct PartsInText {
    // Throws std::length_error if the text has 4 GiB or more.
    explicit PartsInText(std::vector<std::unique_ptr<PartText>> parts);

    std::vector<std::unique_ptr<PartText>> texts;
    std::vector<std::uint32_t> file_ends;   // offset of the newline after each file
    std::vector<std::uint32_t> part_files;  // first file of each part, and the end

    std::vector<std::size_t> numbers() const;  // of the parts
    std::size_t size() const { return file_ends.back() + std::size_t{1}; }
    // Writes the text with its newlines to `bytes`, and frees the text here. Throws
    // std::invalid_argument unless `bytes` has size() bytes.
    void move_to(std::span<std::uint8_t> bytes, unsigned num_threads);
};

// The words and rules of such parts. The words of each part are in the order of their first
// occurrence; parts follow each other. Rule r ends at rule_ends[r] in symbols; the rules of the
// part at index p begin with rule part_rules[p]. A symbol is a word or a rule of the part (rules
// are numbered after the part's words), or a splitter.
struct PartsInRules {
    std::span<const char> word_bytes;
    std::span<const std::uint32_t> word_ends;   // end of each word in word_bytes
    std::span<const std::uint32_t> part_words;  // first word of each part, and the end
    std::span<const Symbol> symbols;
    std::span<const std::uint32_t> rule_ends;
    std::span<const std::uint32_t> part_rules;  // first rule of each part, and the end
};

// Throws std::invalid_argument unless `rules` has this number of parts.
void check_num_parts(const PartsInRules& rules, std::size_t num_parts);

// Sets the words and rules of the part at an index, whose head has its files. Throws
// std::invalid_argument if they are not valid.
void set_external_rules(BuiltPart& part, BuilderKind builder, const PartsInRules& rules,
                        std::size_t index);

}  // namespace gompfs

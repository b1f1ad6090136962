// A part with a head, opened for statistics: its head and its root, without the bytes of its text.
//
// The root is checked so strictly that its words are those of the text: words and separators follow
// the word rule, a symbol that reaches over the end of a block is the same in both blocks, each
// block begins where its first symbol says, and the symbols end where the part ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/symbol_table.h"
#include "codec/tadoc_codec.h"
#include "common/bytes.h"
#include "text/head.h"
#include "text/head_tokens.h"
#include "text/part_ends.h"
#include "text/stored_parts.h"
#include "text/tokenizer.h"
#include "text/word_section.h"

namespace gompfs {

[[noreturn]] void fail_part();

// Reads the tokens of a head, given as a block. Throws std::invalid_argument if it is damaged.
void read_tokens(Bytes head, HeadTokens& tokens);

class OpenedPart {
  public:
    // Throws std::invalid_argument if the part is damaged.
    OpenedPart(const StoredPart& part, const WordSection& section, const Tokenizer& tokenizer);

    // Calls take(rank) for every symbol of the root but the splitter, and end(start, size, goes_on)
    // after each piece of a file. Throws std::invalid_argument if the root is damaged.
    template <typename Take, typename End>
    void for_each_piece(Take&& take, End&& end);

    Head head;
    PartEnds ends;  // set by for_each_piece

  private:
    void read_ranks(std::size_t block, TadocRanks& ranks) const;
    void check_separators_in_rules() const;
    bool is_adjacent_separator(const Expansion& before, const Expansion& symbol) const {
        return are_separators_apart_ && symbol.begins_with_separator() && symbol.size() != 0 &&
               before.size() != 0 && !before.ends_with_word();
    }

    const StoredPart& part_;
    // Under the rule `letters`, two separators next to each other could contain a character that is
    // in neither of them.
    const bool are_separators_apart_;
    std::vector<Expansion> expansions_;  // by symbol, without the offset of their bytes
    SymbolTable table_;                  // expansions by rank
};

template <typename Take, typename End>
void OpenedPart::for_each_piece(Take&& take, End&& end) {
    std::uint64_t position = 0, start = 0, last_start = 0;
    std::uint32_t last = ~std::uint32_t{0};
    Expansion before;
    bool cuts_word = false;
    TadocRanks block;
    for (std::size_t number = 0; number < part_.blocks.size(); ++number) {
        read_ranks(number, block);
        std::span<const std::uint32_t> ranks = block.ranks;
        const std::uint64_t block_start = number * part_.block_size;
        const Expansion& first = table_.expansions[ranks[0]];
        if (block.skip >= first.size()) {
            fail_part();
        }
        if (block.skip != 0) {
            if (ranks[0] != last || last_start + block.skip != block_start) {
                fail_part();
            }
            ranks = ranks.subspan(1);
        } else if (position - first.takes_space_of(before) != block_start) {
            fail_part();
        }
        if (number == 0) {
            ends.begins_with_word = !first.begins_with_separator();
        }
        for (const std::uint32_t rank : ranks) {
            const Expansion symbol = table_.expansions[rank];
            if (is_adjacent_separator(before, symbol)) [[unlikely]] {
                fail_part();
            }
            position -= symbol.takes_space_of(before);
            if (symbol.size() == 0) {  // the splitter
                cuts_word = before.ends_with_word();
                end(start, position - start, false);
                start = position;
            } else {
                last_start = position;
                position += symbol.size();
                take(rank);
            }
            last = rank;
            before = symbol;
        }
    }
    if (position != part_.size) {
        fail_part();
    }
    if (position != start) {
        end(start, position - start, true);
    }
    ends.ends_with_separator = before.size() != 0 || !cuts_word;
}

}  // namespace gompfs

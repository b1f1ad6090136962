// The head of a part of text: its symbols, as an archive stores them (docs/format.md).
//
// There are two ways to read a head. read_head() gives the part's grammar, which statistics need.
// read_symbols() expands all symbols into the pool, for blocks, and takes less time. Both check
// everything that they read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "codec/class_code.h"
#include "codec/symbol_table.h"
#include "common/bytes.h"
#include "text/word_section.h"

namespace gompfs {

// The symbols of a part are numbered in this order: the splitter if there is one, local words,
// global words, local separators, global separators, rules.
struct Head {
    bool has_splitter = false;
    // Local tokens: token i has the bytes [starts[i], starts[i + 1]) of token_bytes.
    TokenList local_words, local_separators;
    std::vector<std::uint32_t> global_words, global_separators;  // numbers in the word section
    // Rules in CSR form, as numbers of symbols; rule i is symbol first_rule() + i.
    std::vector<std::uint32_t> rule_starts{0};
    std::vector<std::uint32_t> rule_symbols;
    std::vector<std::uint32_t> level_sizes;  // number of rules of level 1, 2, ...
    std::vector<std::uint8_t> classes;       // by symbol
    std::vector<std::uint32_t> symbols;      // by rank
    ClassTable code;                         // of the ranks in blocks

    std::uint32_t num_words() const {
        return static_cast<std::uint32_t>(local_words.size() + global_words.size());
    }
    std::uint32_t num_separators() const {
        return static_cast<std::uint32_t>(local_separators.size() + global_separators.size());
    }
    std::uint32_t first_word() const { return has_splitter ? 1 : 0; }
    std::uint32_t first_separator() const { return first_word() + num_words(); }
    std::uint32_t first_rule() const { return first_separator() + num_separators(); }
    std::uint32_t num_rules() const { return static_cast<std::uint32_t>(rule_starts.size() - 1); }
    std::uint32_t num_symbols() const { return first_rule() + num_rules(); }
};

// Reads the payload of a head. Returns nothing if it is not valid.
std::optional<Head> read_head(Bytes payload);

// Reads the payload of a head, and expands its symbols. Returns nothing if it is not valid, a
// global word or separator does not exist, or the pool does not have exactly pool_size bytes.
std::optional<SymbolTable> read_symbols(Bytes payload, const WordSection& words,
                                        std::size_t pool_size);

// What a head that is to be written consists of, besides its local and global tokens: rules as
// ranks, level by level, and sorted by the rank of the first symbol within a level.
struct HeadRules {
    std::vector<std::uint32_t> level_sizes;
    std::vector<std::uint32_t> starts{0};
    std::vector<std::uint32_t> ranks;
};

// Returns the payload of a head. `head` needs no rules, no symbols and no code. `level` is that of
// gompresso-bit for the bytes of local tokens. `code` has counted all ranks in rules and blocks and
// is built here.
std::vector<std::uint8_t> write_head(const Head& head, const HeadRules& rules, int level,
                                     ClassEncoder& code);

}  // namespace gompfs

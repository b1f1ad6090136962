// The payload of a head, decoded to arrays: what the expansion of its symbols (symbol_pool.cpp) and
// the grammar of its part (head_reader.cpp) are made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/class_code.h"
#include "codec/item_rows.h"
#include "common/bit_stream.h"
#include "common/bytes.h"
#include "common/large_vector.h"
#include "shared/format_constants.h"

namespace gompfs {

// Keeps its memory from one head to the next.
class HeadArrays {
  public:
    enum class Extent { all, tokens, local_words };

    // Reads a payload. Returns false if it is not valid, as far as that can be said without
    // expanding words and rules: see what follows for what its users have to check. With
    // Extent::tokens, neither classes nor rules are read or checked; with Extent::local_words,
    // neither are separator_sizes, global_words and global_separators.
    bool read(Bytes payload, Extent extent = Extent::all);
    // After Extent::tokens: reads the classes and rules. The payload must still be there.
    bool read_rest();

    bool has_splitter = false;
    // The bytes of local words without prefixes, each with a space, then those of the separators.
    // Users check that they fill these bytes exactly, and that prefixes fit (word_expander.h).
    Bytes token_bytes;
    std::span<const std::uint32_t> prefixes;         // by local word
    std::span<const std::uint32_t> separator_sizes;  // by local separator, minus 1
    // Numbers in the section `words`, which may have fewer. Ascending.
    std::span<const std::uint32_t> global_words, global_separators;
    std::span<const std::uint8_t> classes;       // by symbol. Users check them (RankCounter)
    std::vector<std::uint32_t> level_sizes;      // number of rules of level 1, 2, ...
    std::span<const std::uint32_t> rule_sizes;   // by rule, minus 2
    std::span<const std::uint32_t> first_ranks;  // by rule: its first symbol
    // The other symbols, rule after rule. Users check that these have lower levels than the rule,
    // and that none is the splitter.
    std::span<const std::uint32_t> other_ranks;
    const ClassTable& rank_code() const { return codes_.back(); }

    std::uint32_t first_word() const { return has_splitter ? 1 : 0; }
    std::size_t num_symbols() const { return classes.size(); }

  private:
    struct Fields;

    void forget_large_arrays();
    bool read_token_bytes(Bytes stored, std::size_t content_size);
    bool read_levels(BitReader& in, std::uint32_t num_rules);
    bool read_codes(BitReader& in, int first, int end);
    bool read_tokens(const Fields& fields, const ItemStream& stream, Extent extent);
    bool read_numbers(const ItemStream& stream, int array, std::span<std::uint32_t> into,
                      std::span<const std::uint32_t>& numbers);
    bool read_global_numbers(const ItemStream& stream, int first_array,
                             std::span<const std::uint32_t> array_sizes,
                             std::span<const std::uint32_t>& numbers);
    bool read_classes(const Fields& fields, const ItemStream& stream);
    bool read_rules(const Fields& fields, const ItemStream& stream);
    std::span<std::uint32_t> take_numbers(std::size_t count);
    ItemStream items_of(Bytes stream);

    LargeVector<std::uint8_t> token_bytes_, classes_;
    LargeVector<std::uint32_t> numbers_;  // of all arrays but the last
    std::size_t num_taken_ = 0;           // of numbers_
    LargeVector<std::uint32_t> other_ranks_;
    std::array<ClassTable, kNumHeadArrays> codes_;

    // Where read_rest() goes on: the payload, the lengths of its codes, the next items.
    Bytes payload_;
    std::optional<BitReader> code_bits_;
    std::array<std::uint32_t, kNumSubBlocks> positions_, ends_;
};

// Hands out the ranks of symbols, in the order of their numbers.
class RankCounter {
  public:
    RankCounter();
    std::uint32_t next(std::uint8_t number_class) { return next_[number_class]++; }
    // Whether num_symbols symbols have exactly the ranks below num_symbols.
    bool is_complete(std::size_t num_symbols) const;

  private:
    std::array<std::uint32_t, kNumClasses> next_;
};

}  // namespace gompfs

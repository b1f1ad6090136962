// Reads one part of a grammar section.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/section_cursor.h"

namespace gompfs {

// All functions throw std::invalid_argument for invalid data. They fill objects that may have been
// used before, to save the allocation of fresh memory.

// Skips a part and returns its bytes, decoding only what is needed to find its end.
std::span<const std::uint8_t> skip_part(SectionCursor& in);

// Reads what comes before the rules.
void read_part_head(SectionCursor& in, std::uint32_t dictionary_size, PartHead& head);

// Reads the lengths of the rules, as the starts of Rules.
void read_rule_starts(SectionCursor& in, std::uint64_t num_words,
                      std::vector<std::uint64_t>& starts);

void read_part(std::span<const std::uint8_t> bytes, std::uint32_t dictionary_size, Part& part);

// Throws if a part stands for more or fewer words than it says.
void check_num_tokens(const PartHead& head, std::uint64_t num_tokens);

// Adds up the numbers of words of a section's parts, on several threads. The sum must be below
// kMaxTokens, whatever a hostile section claims, so that counts fit into 64 bits.
class TokenSum {
  public:
    void add(std::uint64_t num_tokens) {  // num_tokens must be below kMaxTokens
        std::uint64_t sum = sum_.load(std::memory_order_relaxed);
        while (!sum_.compare_exchange_weak(sum, std::min(sum + num_tokens, kMaxTokens),
                                           std::memory_order_relaxed)) {
        }
    }
    // Throws std::invalid_argument if the sum is kMaxTokens or more.
    void check() const;

  private:
    std::atomic<std::uint64_t> sum_ = 0;
};

[[noreturn]] void fail_symbol();
void check_splitters(const PartHead& head, std::size_t num_splitters, bool are_last);

// Reads the symbols of all rules: calls begin(rule) for each rule, then take(symbol) for each of
// its symbols, splitters included. Checks that every symbol is a known word, a rule with a higher
// number, or a splitter in the root.
template <typename Begin, typename Take>
void read_symbols(SectionCursor& in, const PartHead& head, const std::vector<std::uint64_t>& starts,
                  Begin&& begin, Take&& take) {
    const std::uint64_t num_words = head.words.size(), num_rules = starts.size() - 1;
    std::size_t num_splitters = 0;
    bool is_splitter = true;
    for (std::uint64_t rule = 0; rule < num_rules; ++rule) {
        begin(static_cast<std::uint32_t>(rule));
        std::array<std::uint32_t, 64> coded_symbols;
        for (std::uint64_t left = starts[rule + 1] - starts[rule]; left != 0;) {
            const std::span some =
                std::span(coded_symbols).first(std::min(left, coded_symbols.size()));
            in.numbers(some);
            left -= some.size();
            for (const std::uint32_t coded : some) {
                const std::uint64_t value = coded / 2, is_rule = ~coded & 1;
                const std::uint64_t limit = is_rule != 0 ? num_rules - rule : num_words;
                if (value - is_rule < limit - is_rule) [[likely]] {
                    take(static_cast<Symbol>(is_rule != 0 ? num_words + num_rules - value : value));
                } else if (coded == 0 && rule == 0) {
                    take(kSplitter);
                    ++num_splitters;
                } else {
                    fail_symbol();
                }
            }
            is_splitter = some.back() == 0;
        }
        if (rule == 0) {
            check_splitters(head, num_splitters, is_splitter);
        }
    }
}

}  // namespace gompfs

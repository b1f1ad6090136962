// Batch Re-Pair (Larsson and Moffat 2000, with many digrams replaced per round).
//
// Algorithm
//
// Re-Pair replaces the most frequent digram of a text by a rule, again and again. That takes a
// pass, or large data structures, for each rule. Here each round counts all digrams in a hash
// table, and then chooses occurrences that are locally the most frequent and do not overlap:
// walking from the left, it goes up to the top of each ascent in frequency, and takes every second
// position down from there. Every digram that was chosen at least twice becomes a rule, and its
// chosen occurrences are replaced. A few passes suffice. Rounds end when a round replaces no more
// than one of 512 symbols, or after 32 rounds. tidy() finally dissolves the rules that do not pay.
//
// Invariants
//
// - A rule of a round consists of words and rules of earlier rounds only.
// - The rules are the same on every machine and for every number of threads, and equal those of
//   kernels/grammar/repair.cu.
// - A symbol marked kUnique starts a digram that is known to occur once. Counts of existing digrams
//   never grow, so the mark stays valid until a neighbour is replaced.
//
// Optimizations
//
// Digrams marked kUnique are not counted, so the table shrinks from round to round. Look-ups in the
// table are prefetched 16 positions ahead. A key and its count share one 64-bit slot. What loops
// read again and again is in local variables: after a store, a member may have changed.
#include "grammar/repair.h"

#include <algorithm>
#include <bit>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr int kMaxRounds = 32;
// Higher frequencies count as this one. A part of a text has fewer than 2^23 symbols, so a slot has
// enough bits for the count. kernels/grammar/repair.cu has the same limit.
constexpr std::uint64_t kMaxFrequency = (1 << 18) - 1;
constexpr std::size_t kPrefetchDistance = 16;
// A bit on a symbol: the digram that starts here is known to occur only once. Counts of existing
// digrams never grow.
constexpr Symbol kUnique = 0x80000000;
constexpr std::uint32_t kNoSlot = ~0u;

// Sets the first slots of a table to 0. A table that is too small is replaced, not copied.
void clear_slots(auto& table, std::size_t num_slots) {
    if (table.size() < num_slots) {
        table = {};
        table.resize(num_slots);
    }
    std::fill_n(table.begin(), num_slots, 0);
}

}  // namespace

void Repair::start(std::vector<Symbol>& symbols, std::uint32_t num_words) {
    symbols_ = symbols.data();
    size_ = symbols.size();
    num_words_ = num_words;
    // The number of rules and words together is never above the number of symbols at the start.
    symbol_bits_ = std::bit_width(size_ + 1);
    count_mask_ = (std::uint64_t{1} << (64 - 2 * symbol_bits_)) - 1;
    rules_.clear();
    if (slot_of_.size() < size_) {
        slot_of_.resize(size_);
        frequency_.resize(size_ + 1);
        chosen_.resize(size_);
    }
}

bool Repair::may_repeat(std::size_t position) const {
    return (symbols_[position] & kUnique) == 0 && symbols_[position] != kSplitter &&
           (symbols_[position + 1] & ~kUnique) != kSplitter;
}

std::uint64_t Repair::key(std::size_t position) const {
    const std::uint64_t left = symbols_[position];
    const std::uint64_t right = symbols_[position + 1] & ~kUnique;
    return (left << symbol_bits_ | right) + 1;
}

void Repair::count_digrams() {
    const std::size_t last = size_ - 1;
    std::size_t num_candidates = 0;
    for (std::size_t position = 0; position < last; ++position) {
        num_candidates += may_repeat(position);
    }
    const std::size_t num_slots = std::bit_ceil(num_candidates * 3 / 2 + 2);
    clear_slots(digrams_, num_slots);
    clear_slots(rule_of_, num_slots);
    const int count_bits = 64 - 2 * symbol_bits_;
    const int hash_shift = 64 - std::bit_width(num_slots - 1);
    const std::uint64_t count_mask = count_mask_;
    std::uint64_t* const digrams = digrams_.data();
    std::uint32_t* const slot_of = slot_of_.data();
    // Sets the slot at which the search for a digram will begin.
    const auto prepare = [&](std::size_t position) {
        slot_of[position] = kNoSlot;
        if (may_repeat(position)) {
            const std::uint64_t slot = key(position) * 0x9e3779b97f4a7c15u >> hash_shift;
            slot_of[position] = static_cast<std::uint32_t>(slot);
            __builtin_prefetch(&digrams[slot], 1);
        }
    };
    for (std::size_t position = 0; position < std::min(last, kPrefetchDistance); ++position) {
        prepare(position);
    }
    for (std::size_t position = 0; position < last; ++position) {
        if (position + kPrefetchDistance < last) {
            prepare(position + kPrefetchDistance);
        }
        if (slot_of[position] == kNoSlot) {
            continue;
        }
        const std::uint64_t wanted = key(position);
        std::size_t slot = slot_of[position];
        std::uint64_t digram = digrams[slot];
        while (digram != 0 && digram >> count_bits != wanted) {
            slot = (slot + 1) & (num_slots - 1);
            digram = digrams[slot];
        }
        digram = digram == 0 ? wanted << count_bits : digram;
        digrams[slot] = digram + ((digram & count_mask) != count_mask);
        slot_of[position] = static_cast<std::uint32_t>(slot);
    }
    slot_of[last] = kNoSlot;
}

void Repair::look_up_frequencies() {
    for (std::size_t position = 0; position < size_; ++position) {
        const std::size_t ahead = position + kPrefetchDistance;
        if (ahead < size_ && slot_of_[ahead] != kNoSlot) {
            __builtin_prefetch(&digrams_[slot_of_[ahead]]);
        }
        const std::uint32_t slot = slot_of_[position];
        const std::uint64_t count = slot == kNoSlot ? 0 : digrams_[slot] & count_mask_;
        frequency_[position] =
            count < 2 ? 0 : static_cast<std::uint32_t>(std::min(count, kMaxFrequency));
    }
    frequency_[size_] = 0;
}

void Repair::choose(std::size_t position) {
    chosen_[position] = true;
    ++rule_of_[slot_of_[position]];
}

// Chooses occurrences so that every other repeated digram overlaps a chosen one that is at least as
// frequent: the top of each ascent in frequency, and every second position down from it.
void Repair::choose_occurrences() {
    std::fill_n(chosen_.begin(), size_, 0);
    for (std::size_t position = 0; position < size_;) {
        if (frequency_[position] == 0) {
            ++position;
            continue;
        }
        const std::size_t bottom = position;
        while (frequency_[position + 1] > frequency_[position]) {
            ++position;
        }
        for (std::size_t down = position;; down -= 2) {
            choose(down);
            if (down < bottom + 2) {
                break;
            }
        }
        position += 2;
    }
}

// Replaces the digrams that were chosen more than once by rules. Returns the number of occurrences
// replaced.
std::size_t Repair::replace_chosen() {
    std::size_t num_replaced = 0;
    std::size_t out = 0;
    for (std::size_t position = 0; position < size_; ++position) {
        const Symbol symbol = symbols_[position] & ~kUnique;
        const std::uint32_t slot = slot_of_[position];
        const std::size_t ahead = std::min(position + kPrefetchDistance, size_ - 1);
        if (chosen_[ahead]) {
            __builtin_prefetch(&rule_of_[slot_of_[ahead]]);
        }
        if (!chosen_[position] || rule_of_[slot] == 1) {
            const bool unique =
                slot == kNoSlot ? (symbols_[position] & kUnique) != 0 : frequency_[position] == 0;
            symbols_[out++] = symbol | (unique && symbol != kSplitter ? kUnique : 0);
            continue;
        }
        if ((rule_of_[slot] & kUnique) == 0) {
            rule_of_[slot] = kUnique | static_cast<std::uint32_t>(rules_.size());
            rules_.emplace_back(symbol, symbols_[position + 1] & ~kUnique);
        }
        if (out != 0) {
            symbols_[out - 1] &= ~kUnique;  // its digram is a new one
        }
        symbols_[out++] = num_words_ + (rule_of_[slot] & ~kUnique);
        ++position;
        ++num_replaced;
    }
    size_ = out;
    return num_replaced;
}

// A word that occurs once makes both its digrams unique, so they need not be counted.
void Repair::mark_single_words() {
    std::vector<std::uint32_t> counts(num_words_);
    for (std::size_t position = 0; position < size_; ++position) {
        if (symbols_[position] != kSplitter) {
            ++counts[symbols_[position]];
        }
    }
    bool next_is_single = false;
    for (std::size_t position = size_; position-- > 0;) {
        Symbol& symbol = symbols_[position];
        const bool is_splitter = symbol == kSplitter;
        const bool is_single = !is_splitter && counts[symbol] == 1;
        if (is_single || (next_is_single && !is_splitter)) {
            symbol |= kUnique;
        }
        next_is_single = is_single;
    }
}

bool Repair::run_round() {
    if (size_ < 2) {
        return false;
    }
    throw_if_cancelled();
    count_digrams();
    look_up_frequencies();
    choose_occurrences();
    throw_if_cancelled();
    const std::size_t size = size_;
    return replace_chosen() > size / 512;
}

Rules Repair::build(std::vector<Symbol>& symbols, std::uint32_t num_words) {
    start(symbols, num_words);
    mark_single_words();
    for (int round = 0; round < kMaxRounds && run_round(); ++round) {
    }
    for (std::size_t position = 0; position < size_; ++position) {
        symbols_[position] &= ~kUnique;
    }
    return tidy();
}

// Dissolves rules that do not pay: rules used once, and short rules used two or three times. Rules
// are used by later rules only, so the number of uses is final when a rule is reached from the last
// one down.
Rules Repair::tidy() {
    const std::size_t num_rules = rules_.size();
    std::vector<std::uint32_t> uses(num_rules), lengths(num_rules);
    std::vector<bool> kept(num_rules, true);
    const auto use = [&](Symbol symbol, std::uint32_t times) {
        if (symbol >= num_words_ && symbol != kSplitter) {
            uses[symbol - num_words_] += times;
        }
    };
    for (std::size_t position = 0; position < size_; ++position) {
        use(symbols_[position], 1);
    }
    for (const auto& [left, right] : rules_) {
        use(left, 1);
        use(right, 1);
    }
    const auto length = [&](Symbol symbol) {
        return symbol >= num_words_ && uses[symbol - num_words_] < 2 ? lengths[symbol - num_words_]
                                                                     : 1;
    };
    for (std::size_t rule = 0; rule < num_rules; ++rule) {
        lengths[rule] = length(rules_[rule].first) + length(rules_[rule].second);
    }
    for (std::size_t rule = num_rules; rule-- > 0;) {
        const std::uint64_t saved = std::uint64_t{uses[rule]} * (lengths[rule] - 1);
        if (uses[rule] < 2 || saved <= lengths[rule] + 1) {
            kept[rule] = false;
            use(rules_[rule].first, uses[rule] - 1);
            use(rules_[rule].second, uses[rule] - 1);
        }
    }
    // Kept rules are numbered after the root, from the last one down.
    std::vector<std::uint32_t> number(num_rules);
    std::uint32_t next = 1;
    for (std::size_t rule = num_rules; rule-- > 0;) {
        number[rule] = kept[rule] ? next++ : 0;
    }
    Rules result;
    std::vector<Symbol> stack;
    const auto write = [&](Symbol first) {
        stack.push_back(first);
        while (!stack.empty()) {
            const Symbol symbol = stack.back();
            stack.pop_back();
            if (symbol < num_words_ || symbol == kSplitter) {
                result.symbols.push_back(symbol);
            } else if (kept[symbol - num_words_]) {
                result.symbols.push_back(num_words_ + number[symbol - num_words_]);
            } else {
                stack.push_back(rules_[symbol - num_words_].second);
                stack.push_back(rules_[symbol - num_words_].first);
            }
        }
    };
    result.starts.push_back(0);
    for (std::size_t position = 0; position < size_; ++position) {
        write(symbols_[position]);
    }
    for (std::size_t rule = num_rules; rule-- > 0;) {
        if (kept[rule]) {
            result.starts.push_back(result.symbols.size());
            write(rules_[rule].first);
            write(rules_[rule].second);
        }
    }
    result.starts.push_back(result.symbols.size());
    return result;
}

}  // namespace gompfs

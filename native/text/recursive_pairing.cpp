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
// than one of 128 symbols, or after 32 rounds. tidy() finally dissolves the rules that are used
// once.
//
// Invariants
//
// - A rule of a round consists of words and of rules of earlier rounds.
// - The rules are the same on every machine and for every number of threads.
// - A symbol marked kUnique starts a digram that is known to occur once. Counts of existing digrams
//   never grow, so the mark stays valid until a neighbour is replaced.
//
// Optimizations
//
// Digrams marked kUnique are not counted, so the table shrinks from round to round. A round works
// on three lists of positions, each shorter than the one before: candidates, those that repeat, and
// those that were chosen. A list is made without a branch for each position, because the processor
// would often predict it wrongly. Look-ups in the table are prefetched 16 positions ahead. A key
// and its count share one 64-bit slot. What loops read again and again is in local variables: after
// a store, a member may have changed.
#include "text/recursive_pairing.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr int kMaxRounds = 32;
// Higher frequencies count as this one. A part of a text has fewer than 2^23 symbols, so a slot has
// enough bits for the count.
constexpr std::uint64_t kMaxFrequency = (1 << 18) - 1;
constexpr std::size_t kPrefetchDistance = 16;
// A bit on a symbol: the digram that starts here is known to occur only once. Counts of existing
// digrams never grow.
constexpr Symbol kUnique = 0x80000000;

// Sets the first slots of a table to 0. A table that is too small is replaced, not copied.
void clear_slots(auto& table, std::size_t num_slots) {
    if (table.size() < num_slots) {
        table = {};
        table.resize(num_slots);
    }
    std::fill_n(table.begin(), num_slots, 0);
}

}  // namespace

void RecursivePairing::start(std::vector<Symbol>& symbols, std::uint32_t num_words) {
    symbols_ = symbols.data();
    size_ = symbols.size();
    num_words_ = num_words;
    // The number of rules and words together is never above the number of symbols at the start.
    symbol_bits_ = std::bit_width(size_ + 1);
    rules_.clear();
    if (candidates_.size() < size_) {
        candidates_.resize(size_);
        repeats_.resize(size_ + 1);
        chosen_.resize(size_);
    }
}

// Lists the positions whose digrams may repeat.
void RecursivePairing::list_candidates() {
    const Symbol* const symbols = symbols_;
    Candidate* const candidates = candidates_.data();
    std::size_t count = 0;
    for (std::size_t position = 0; position + 1 < size_; ++position) {
        candidates[count].position = static_cast<std::uint32_t>(position);
        // A symbol with the mark kUnique is above all others.
        static_assert(kUnique > kSplitter);
        count += static_cast<std::size_t>(symbols[position] < kSplitter) &
                 static_cast<std::size_t>(symbols[position + 1] != kSplitter);
    }
    num_candidates_ = count;
}

std::uint64_t RecursivePairing::key(std::size_t position) const {
    const std::uint64_t left = symbols_[position];
    const std::uint64_t right = symbols_[position + 1] & ~kUnique;
    return (left << symbol_bits_ | right) + 1;
}

// Counts the digrams of all candidates, and sets their slots.
void RecursivePairing::count_digrams() {
    const std::size_t num_slots = std::bit_ceil(num_candidates_ * 3 / 2 + 2);
    clear_slots(digrams_, num_slots);
    clear_slots(rule_of_, num_slots);
    const int count_bits = 64 - 2 * symbol_bits_;
    const int hash_shift = 64 - std::bit_width(num_slots - 1);
    const std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;
    std::uint64_t* const digrams = digrams_.data();
    Candidate* const candidates = candidates_.data();
    // Sets the slot at which the search for a digram will begin.
    const auto prepare = [&](std::size_t index) {
        const std::uint64_t slot =
            key(candidates[index].position) * 0x9e3779b97f4a7c15u >> hash_shift;
        candidates[index].slot = static_cast<std::uint32_t>(slot);
        __builtin_prefetch(&digrams[slot], 1);
    };
    for (std::size_t index = 0; index < std::min(num_candidates_, kPrefetchDistance); ++index) {
        prepare(index);
    }
    for (std::size_t index = 0; index < num_candidates_; ++index) {
        if (index + kPrefetchDistance < num_candidates_) {
            prepare(index + kPrefetchDistance);
        }
        const std::uint64_t wanted = key(candidates[index].position);
        std::size_t slot = candidates[index].slot;
        std::uint64_t digram = digrams[slot];
        while (digram != 0 && digram >> count_bits != wanted) {
            slot = (slot + 1) & (num_slots - 1);
            digram = digrams[slot];
        }
        digram = digram == 0 ? wanted << count_bits : digram;
        digrams[slot] = digram + ((digram & count_mask) != count_mask);
        candidates[index].slot = static_cast<std::uint32_t>(slot);
    }
}

// Lists the candidates whose digrams repeat, and marks the others.
void RecursivePairing::list_repeats() {
    const std::uint64_t count_mask = (std::uint64_t{1} << (64 - 2 * symbol_bits_)) - 1;
    const std::uint64_t* const digrams = digrams_.data();
    Symbol* const symbols = symbols_;
    Repeat* const repeats = repeats_.data();
    std::size_t num_repeats = 0;
    for (std::size_t index = 0; index < num_candidates_; ++index) {
        if (index + kPrefetchDistance < num_candidates_) {
            __builtin_prefetch(&digrams[candidates_[index + kPrefetchDistance].slot]);
        }
        const auto [position, slot] = candidates_[index];
        const std::uint64_t count = digrams[slot] & count_mask;
        repeats[num_repeats] = {position, slot,
                                static_cast<std::uint32_t>(std::min(count, kMaxFrequency))};
        num_repeats += count >= 2;
        symbols[position] |= count >= 2 ? 0 : kUnique;
    }
    repeats[num_repeats] = {~0u, 0, 0};
    num_repeats_ = num_repeats;
}

// Chooses occurrences so that every other repeated digram overlaps a chosen one that is at least as
// frequent: the top of each ascent in frequency, and every second position down from it.
void RecursivePairing::choose_occurrences() {
    const Repeat* const repeats = repeats_.data();
    const auto next_overlaps = [&](std::size_t index) {
        return repeats[index + 1].position == repeats[index].position + 1;
    };
    num_chosen_ = 0;
    for (std::size_t index = 0; index < num_repeats_; ++index) {
        const std::size_t bottom = index;
        while (next_overlaps(index) && repeats[index + 1].frequency > repeats[index].frequency) {
            ++index;
        }
        for (std::size_t down = bottom + (index - bottom) % 2; down <= index; down += 2) {
            chosen_[num_chosen_++] = {repeats[down].position, repeats[down].slot};
            ++rule_of_[repeats[down].slot];
        }
        index += next_overlaps(index);
    }
}

// Replaces the digrams that were chosen more than once by rules. Returns the number of occurrences
// replaced.
std::size_t RecursivePairing::replace_chosen() {
    Symbol* const symbols = symbols_;
    std::size_t num_replaced = 0;
    std::size_t out = 0, next = 0;  // symbols before `next` have moved to positions before `out`
    const auto move_to = [&](std::size_t end) {
        while (next < end) {
            symbols[out++] = symbols[next++];
        }
    };
    for (std::size_t index = 0; index < num_chosen_; ++index) {
        if (index + kPrefetchDistance < num_chosen_) {
            __builtin_prefetch(&rule_of_[chosen_[index + kPrefetchDistance].slot], 1);
        }
        const auto [position, slot] = chosen_[index];
        std::uint32_t rule = rule_of_[slot];
        if (rule == 1) {
            continue;
        }
        if ((rule & kUnique) == 0) {
            rule = rule_of_[slot] = kUnique | static_cast<std::uint32_t>(rules_.size());
            rules_.emplace_back(symbols[position], symbols[position + 1] & ~kUnique);
        }
        move_to(position);
        if (out != 0) {
            symbols[out - 1] &= ~kUnique;  // its digram is a new one
        }
        symbols[out++] = num_words_ + (rule & ~kUnique);
        next += 2;
        ++num_replaced;
    }
    move_to(size_);
    size_ = out;
    return num_replaced;
}

// A word that occurs once makes both its digrams unique, so they need not be counted.
void RecursivePairing::mark_single_words() {
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

bool RecursivePairing::run_round() {
    if (size_ < 2) {
        return false;
    }
    throw_if_cancelled();
    list_candidates();
    count_digrams();
    list_repeats();
    choose_occurrences();
    throw_if_cancelled();
    const std::size_t size = size_;
    return replace_chosen() > size / 128;
}

Rules RecursivePairing::build(std::vector<Symbol>& symbols, std::uint32_t num_words) {
    start(symbols, num_words);
    mark_single_words();
    for (int round = 0; round < kMaxRounds && run_round(); ++round) {
    }
    for (std::size_t position = 0; position < size_; ++position) {
        symbols_[position] &= ~kUnique;
    }
    return tidy();
}

// Dissolves rules that are used once. Rules are used by later rules only, so the number of uses is
// final when a rule is reached from the last one down.
Rules RecursivePairing::tidy() {
    const std::size_t num_rules = rules_.size(), num_symbols = num_words_ + num_rules;
    // By symbol, the last one for splitters: loops need no branch for words and splitters.
    const auto index_of = [&](Symbol symbol) { return std::min<std::size_t>(symbol, num_symbols); };
    std::vector<std::uint32_t> uses(num_symbols + 1);
    for (std::size_t position = 0; position < size_; ++position) {
        ++uses[index_of(symbols_[position])];
    }
    for (const auto& [left, right] : rules_) {
        ++uses[left];
        ++uses[right];
    }
    // What each symbol becomes. Kept rules are numbered after the root, from the last one down.
    constexpr Symbol kDissolved = ~Symbol{0};
    std::vector<Symbol> become(num_symbols + 1, kSplitter);
    std::iota(become.begin(), become.begin() + num_words_, 0);
    Symbol next = num_words_ + 1;
    for (std::size_t rule = num_rules; rule-- > 0;) {
        const std::size_t symbol = num_words_ + rule;
        if (uses[symbol] < 2) {
            become[symbol] = kDissolved;
            uses[rules_[rule].first] += uses[symbol] - 1;
            uses[rules_[rule].second] += uses[symbol] - 1;
        } else {
            become[symbol] = next++;
        }
    }
    Rules result;
    result.symbols.reserve(size_ + 2 * num_rules);
    // Recursive: a dissolved rule is of an earlier round than the rule that uses it.
    const auto write = [&](Symbol symbol, const auto& again) -> void {
        const Symbol written = become[index_of(symbol)];
        if (written != kDissolved) {
            result.symbols.push_back(written);
        } else {
            again(rules_[symbol - num_words_].first, again);
            again(rules_[symbol - num_words_].second, again);
        }
    };
    result.starts.push_back(0);
    for (std::size_t position = 0; position < size_; ++position) {
        write(symbols_[position], write);
    }
    for (std::size_t rule = num_rules; rule-- > 0;) {
        if (become[num_words_ + rule] != kDissolved) {
            result.starts.push_back(result.symbols.size());
            write(rules_[rule].first, write);
            write(rules_[rule].second, write);
        }
    }
    result.starts.push_back(result.symbols.size());
    return result;
}

}  // namespace gompfs

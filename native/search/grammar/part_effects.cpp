// Finds what the symbols of a part do; see part_effects.h.
//
// A rule has symbols of lower levels only. The facts of a level's rules are missing until the level
// ends, so a rule that uses one of them, or one of a higher level, is refused.
#include "search/grammar/part_effects.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/copy.h"
#include "shared/format_constants.h"
#include "text/token_check.h"
#include "text/word_expander.h"

namespace gompfs::search {
namespace {

constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

std::uint32_t number_of(const LineAutomaton::Effect& effect) {
    return effect.state | std::uint32_t{effect.num_lines} << 16;
}

LineAutomaton::Effect effect_of(std::uint32_t number) {
    return {static_cast<LineAutomaton::State>(number), static_cast<std::uint16_t>(number >> 16)};
}

// Makes space for so many items, whose old values are not needed.
template <typename Items>
void reserve(Items& items, std::size_t count) {
    if (items.size() < count) {
        items.clear();
        items.resize(count);
    }
}

}  // namespace

bool PartEffects::read_tokens(Bytes payload, std::size_t pool_size, const SegmentTokens& tokens) {
    global_ = &tokens;
    pool_size_ = pool_left_ = pool_size;
    can_find_ = are_words_expanded_ = are_line_feeds_counted_ = is_pool_begun_ = false;
    ++generation_;
    is_slow_ = false;
    if (pool_size > kMaxPoolSize || !head_.read(payload, HeadArrays::Extent::tokens)) {
        return false;
    }
    reserve(local_words_, head_.prefixes.size());
    WordScanner scanner(automaton_, head_.token_bytes);
    Facts all = 0;
    std::size_t word = 0;
    for (const std::uint32_t prefix : head_.prefixes) {
        if (!scanner.next(prefix)) {
            return false;
        }
        const TokenEffect effect =
            effect_of_word(automaton_, scanner.state(), scanner.stored_size());
        all |= effect.facts;
        local_words_[word++] = effect;
    }
    separator_bytes_ = scanner.rest();
    const Bytes words = head_.token_bytes.first(head_.token_bytes.size() - separator_bytes_.size());
    if (!have_right_ascii(words, head_.prefixes.size(), separator_bytes_, rule_) ||
        !read_local_separators(separator_bytes_) ||
        (!head_.global_words.empty() && head_.global_words.back() >= tokens.num_words()) ||
        (!head_.global_separators.empty() &&
         head_.global_separators.back() >= tokens.num_separators())) {
        return false;
    }
    for (const TokenEffect& separator : local_separators_) {
        all |= separator.facts;
    }
    for (const std::uint32_t number : head_.global_words) {
        all |= tokens.word(number).facts;
    }
    for (const std::uint32_t number : head_.global_separators) {
        all |= tokens.separator(number).facts;
    }
    is_idle_ = (all & facts::kBusy) == 0 &&
               automaton_.after_space[LineAutomaton::kStart] == LineAutomaton::kStart;
    return (all & facts::kMissing) == 0;
}

bool PartEffects::read_local_separators(Bytes bytes) {
    local_separators_.clear();
    for (const std::uint32_t number : head_.separator_sizes) {
        const std::size_t size = std::size_t{number} + 1;
        if (size > bytes.size() || size > kMaxExpansionSize) {
            return false;
        }
        const auto effect = effect_of_separator(automaton_, bytes.first(size));
        if (!effect) {
            return false;
        }
        local_separators_.push_back(*effect);
        bytes = bytes.subspan(size);
    }
    return bytes.empty();
}

bool PartEffects::read_rules() {
    if (!head_.read_rest()) {
        return false;
    }
    const std::size_t count = num_symbols();
    reserve(facts_, count);
    reserve(from_start_, count);
    std::fill_n(facts_.begin(), count, facts::kMissing);
    num_found_ = next_symbol_ = 0;
    constexpr std::size_t kStepsOfSymbol = 8;
    steps_left_ = std::max(max_steps_, kStepsOfSymbol * count);
    reserve(symbols_, count);
    for (int number_class = 0; number_class < kNumClasses; ++number_class) {
        const std::uint64_t end =
            class_base(number_class) + (std::uint64_t{1} << class_extra_bits(number_class));
        ends_of_classes_[number_class] =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(end, count));
    }
    RankCounter ranks;
    return set_tokens(ranks) && set_rules(ranks) && pool_left_ == 0 && ranks.is_complete(count);
}

// Takes the rank of the next symbol. Returns false if it is too high for its class, so that another
// symbol might have it, or if the pool is too small.
bool PartEffects::take_rank(RankCounter& ranks, const TokenEffect& added, std::uint32_t& rank) {
    const std::size_t size = added.facts & facts::kSize;
    const std::uint8_t number_class = head_.classes[next_symbol_];
    rank = ranks.next(number_class);
    if (rank >= ends_of_classes_[number_class] || size > pool_left_) {
        return false;
    }
    symbols_[rank] = static_cast<std::uint32_t>(next_symbol_++);
    pool_left_ -= size;
    from_start_[rank] = added.effect;
    return true;
}

bool PartEffects::set(RankCounter& ranks, const TokenEffect& token) {
    std::uint32_t rank = 0;
    if (!take_rank(ranks, token, rank)) {
        return false;
    }
    facts_[rank] = token.facts;
    return true;
}

bool PartEffects::set_tokens(RankCounter& ranks) {
    const TokenEffect splitter{facts::kSplitter | facts::kSeparator | facts::kBorder, {}};
    const auto set_each = [&](const auto& numbers, const auto& token_of) {
        return std::all_of(numbers.begin(), numbers.end(),
                           [&](const auto& each) { return set(ranks, token_of(each)); });
    };
    const auto itself = [](const TokenEffect& token) { return token; };
    return (!head_.has_splitter || set(ranks, splitter)) &&
           set_each(std::span(local_words_).first(head_.prefixes.size()), itself) &&
           set_each(head_.global_words,
                    [&](std::uint32_t number) { return global_->word(number); }) &&
           set_each(local_separators_, itself) &&
           set_each(head_.global_separators,
                    [&](std::uint32_t number) { return global_->separator(number); });
}

bool PartEffects::set_rules(RankCounter& ranks) {
    std::size_t rule = 0, other = 0;
    for (const std::uint32_t level_size : head_.level_sizes) {
        of_level_.clear();
        for (const std::size_t end = rule + level_size; rule != end; ++rule) {
            TokenEffect added;
            if (!add_rule(rule, other, added)) {
                return false;
            }
            other += std::size_t{head_.rule_sizes[rule]} + 1;
            std::uint32_t rank = 0;
            if (!take_rank(ranks, added, rank)) {
                return false;
            }
            of_level_.emplace_back(rank, added.facts);
        }
        for (const auto& [rank, of_rule] : of_level_) {
            facts_[rank] = of_rule;
        }
    }
    return true;
}

// Finds the facts of a rule, and its effect if it is busy.
bool PartEffects::add_rule(std::size_t rule, std::size_t first_other, TokenEffect& added) {
    const Facts first = facts_[head_.first_ranks[rule]];
    const std::uint32_t* const others = head_.other_ranks.data() + first_other;
    const std::size_t num_others = std::size_t{head_.rule_sizes[rule]} + 1;
    Facts all = first, before = first, adjacent = 0;
    std::uint64_t size = first & facts::kSize;
    for (std::size_t index = 0; index < num_others; ++index) {
        const Facts symbol = facts_[others[index]];
        size += (symbol & facts::kSize) - facts::takes_space(before, symbol) / facts::kSeparator;
        adjacent |= facts::is_adjacent(before, symbol);
        all |= symbol;
        before = symbol;
    }
    if ((all & (facts::kMissing | facts::kSplitter)) != 0 || adjacent != 0 ||
        size > kMaxExpansionSize) {
        return false;
    }
    added.facts = static_cast<Facts>(size) | (all & (facts::kEndsLine | facts::kLineFeed)) |
                  (first & facts::kSeparator) | (before & (facts::kWord | facts::kBorder));
    if ((all & facts::kBusy) != 0 ||
        automaton_.after_space[LineAutomaton::kStart] != LineAutomaton::kStart) {
        if (!run_rule(rule, first_other, LineAutomaton::kStart, added.effect)) {
            return false;
        }
        const bool is_idle =
            added.effect.state == LineAutomaton::kStart && added.effect.num_lines == 0;
        added.facts |= is_idle ? 0 : facts::kBusy;
    }
    return true;
}

bool PartEffects::run_rule(std::size_t rule, std::size_t first_other, State state, Effect& effect) {
    const std::size_t num_others = std::size_t{head_.rule_sizes[rule]} + 1;
    if (!take_steps(num_others + 1)) {
        return false;
    }
    Walk walk{state};
    bool is_found = step(walk, head_.first_ranks[rule]);
    const std::uint32_t* const others = head_.other_ranks.data() + first_other;
    for (std::size_t index = 0; index < num_others && is_found; ++index) {
        is_found = step(walk, others[index]);
    }
    effect = {walk.state, static_cast<std::uint16_t>(walk.num_lines)};
    return is_found && walk.num_lines <= kMaxExpansionSize;
}

// What a symbol does from a state other than kStart.
bool PartEffects::find(std::uint32_t rank, State state, Effect& effect) {
    if (!can_find_) {
        prepare_find();
    }
    if (state == LineAutomaton::kMatched) {
        if (from_matched_[rank] == kUnknown) {
            if (!run(rank, state, effect)) {
                return false;
            }
            from_matched_[rank] = number_of(effect);
        }
        effect = effect_of(from_matched_[rank]);
        return true;
    }
    const std::uint64_t key = generation_ << kBitsOfKey | std::uint64_t{rank} << 16 | state;
    const auto& [known, of_known] = found_[slot_of(key)];
    if (known == key) {
        effect = of_known;
        return true;
    }
    is_slow_ = is_slow_ || num_found_ == kMaxFound;
    if (is_slow_ || !run(rank, state, effect)) {
        return false;
    }
    add_found(key, effect);
    return true;
}

// The slot that has the key, or in which it belongs.
std::size_t PartEffects::slot_of(std::uint64_t key) const {
    const int log2 = std::countr_zero(found_.size());
    std::size_t slot = key * 0x9e3779b97f4a7c15 >> (64 - log2);
    while (is_of_part(found_[slot].first) && found_[slot].first != key) {
        slot = (slot + 1) & (found_.size() - 1);
    }
    return slot;
}

void PartEffects::add_found(std::uint64_t key, const Effect& effect) {
    if (2 * ++num_found_ > found_.size()) {
        std::vector<std::pair<std::uint64_t, Effect>> old(2 * found_.size());
        old.swap(found_);
        for (const auto& each : old) {
            if (is_of_part(each.first)) {
                found_[slot_of(each.first)] = each;
            }
        }
    }
    found_[slot_of(key)] = {key, effect};
}

bool PartEffects::run(std::uint32_t rank, State state, Effect& effect) {
    const std::size_t symbol = symbols_[rank];
    if (is_rule(symbol)) {
        const std::size_t rule = symbol - first_rule();
        return run_rule(rule, rule_starts_[rule], state, effect);
    }
    const Bytes token = bytes_of_token(symbol);
    const auto found = automaton_.run(token, state);
    if (!take_steps(token.size() + 1) || !found) {
        return false;
    }
    effect = *found;
    effect.state = ((facts_[rank] & facts::kWord) != 0 ? automaton_.after_word
                                                       : automaton_.after_separator)[effect.state];
    return true;
}

void PartEffects::prepare_find() {
    can_find_ = true;
    const std::size_t count = num_symbols();
    reserve(rule_starts_, head_.rule_sizes.size());
    std::size_t start = 0;
    for (std::size_t rule = 0; rule < head_.rule_sizes.size(); ++rule) {
        rule_starts_[rule] = static_cast<std::uint32_t>(start);
        start += std::size_t{head_.rule_sizes[rule]} + 1;
    }
    reserve(from_matched_, count);
    std::fill_n(from_matched_.begin(), count, kUnknown);
    if (found_.empty()) {
        found_.resize(kFewFound);
    }
}

Bytes PartEffects::text_of(std::uint32_t rank) {
    if (!is_pool_begun_) {
        begin_pool();
    }
    if (pool_starts_[rank] == kUnknown) {
        add_to_pool(rank);
    }
    return Bytes(pool_).subspan(pool_starts_[rank], facts_[rank] & facts::kSize);
}

void PartEffects::begin_pool() {
    is_pool_begun_ = true;
    if (!can_find_) {
        prepare_find();
    }
    reserve(pool_, pool_size_ + kChunkSize);
    reserve(pool_starts_, num_symbols());
    std::fill_n(pool_starts_.begin(), num_symbols(), kUnknown);
    pool_used_ = 0;
}

// Every symbol is added once, and all together have pool_size_ bytes. The symbols of a rule are of
// lower levels, of which there are few.
void PartEffects::add_to_pool(std::uint32_t rank) {
    const std::size_t symbol = symbols_[rank];
    if (!is_rule(symbol)) {
        const Bytes token = bytes_of_token(symbol);
        std::copy(token.begin(), token.end(), &pool_[pool_used_]);
        if ((facts_[rank] & facts::kWord) != 0) {
            pool_[pool_used_ + token.size()] = ' ';
        }
    } else {
        const std::size_t rule = symbol - first_rule();
        const std::uint32_t first = head_.first_ranks[rule];
        text_of(first);
        for (const std::uint32_t other : other_ranks_of(rule)) {
            text_of(other);
        }
        std::size_t at = pool_used_;
        const auto append = [&](std::uint32_t from) {
            const std::size_t size = facts_[from] & facts::kSize;
            copy_chunks(&pool_[at], &pool_[pool_starts_[from]], size);
            at += size;
        };
        append(first);
        Facts before = facts_[first];
        for (const std::uint32_t other : other_ranks_of(rule)) {
            at -= facts::takes_space(before, facts_[other]) / facts::kSeparator;
            append(other);
            before = facts_[other];
        }
    }
    pool_starts_[rank] = static_cast<std::uint32_t>(pool_used_);
    pool_used_ += facts_[rank] & facts::kSize;
}

std::uint8_t PartEffects::first_byte(std::uint32_t rank) {
    while (is_rule(symbols_[rank])) {
        rank = head_.first_ranks[symbols_[rank] - first_rule()];
    }
    return bytes_of_token(symbols_[rank])[0];
}

const std::uint16_t* PartEffects::line_feeds() {
    if (!std::exchange(are_line_feeds_counted_, true)) {
        count_line_feeds();
    }
    return line_feeds_.data();
}

void PartEffects::count_line_feeds() {
    if (!can_find_) {
        prepare_find();
    }
    reserve(line_feeds_, num_symbols());
    RankCounter ranks;
    for (std::size_t symbol = 0; symbol < num_symbols(); ++symbol) {
        const std::uint32_t rank = ranks.next(head_.classes[symbol]);
        std::size_t count = 0;
        if ((facts_[rank] & facts::kLineFeed) == 0) {
            // It has none.
        } else if (is_rule(symbol)) {
            const std::size_t rule = symbol - first_rule();
            count = line_feeds_[head_.first_ranks[rule]];
            for (const std::uint32_t other : other_ranks_of(rule)) {
                count += line_feeds_[other];
            }
        } else {
            const Bytes token = bytes_of_token(symbol);
            count = static_cast<std::size_t>(std::count(token.begin(), token.end(), '\n'));
        }
        line_feeds_[rank] = static_cast<std::uint16_t>(count);
    }
}

// Expands the local words, which are valid: read_tokens() has gone through them.
void PartEffects::expand_local_words() {
    are_words_expanded_ = true;
    word_starts_.assign(1, 0);
    separator_starts_.assign(1, 0);
    std::size_t total = 0;
    for (std::size_t word = 0; word < head_.prefixes.size(); ++word) {
        total += local_words_[word].facts & facts::kSize;
        word_starts_.push_back(static_cast<std::uint32_t>(total));
    }
    reserve(words_, total + WordExpander::kMargin);
    WordExpander expander(head_.token_bytes);
    for (std::size_t word = 0; word < head_.prefixes.size(); ++word) {
        expander.expand(head_.prefixes[word], words_.data() + word_starts_[word],
                        total - word_starts_[word]);
    }
    for (const std::uint32_t number : head_.separator_sizes) {
        separator_starts_.push_back(separator_starts_.back() + number + 1);
    }
}

// The bytes of a token, without the space of a word.
Bytes PartEffects::bytes_of_token(std::size_t symbol) {
    if (!are_words_expanded_) {
        expand_local_words();
    }
    const WordSection& section = global_->section();
    symbol -= head_.first_word();
    if (symbol < head_.prefixes.size()) {
        return Bytes(words_).subspan(word_starts_[symbol],
                                     word_starts_[symbol + 1] - word_starts_[symbol] - 1);
    }
    symbol -= head_.prefixes.size();
    if (symbol < head_.global_words.size()) {
        const Bytes word = section.words().stored(head_.global_words[symbol]);
        return word.first(word.size() - 1);
    }
    symbol -= head_.global_words.size();
    if (symbol < head_.separator_sizes.size()) {
        return separator_bytes_.subspan(separator_starts_[symbol],
                                        separator_starts_[symbol + 1] - separator_starts_[symbol]);
    }
    return section.separators().stored(
        head_.global_separators[symbol - head_.separator_sizes.size()]);
}

}  // namespace gompfs::search

// What the symbols of a part do to the states of a LineAutomaton.
//
// From kStart, that is found for all symbols when the head is read; from other states, when a
// symbol is met in one, and then kept. A hostile head may have symbols that take very long: what
// is found for a part has a limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/large_vector.h"
#include "search/grammar/line_automaton.h"
#include "search/grammar/token_effects.h"
#include "shared/format_constants.h"
#include "text/head_arrays.h"

namespace gompfs::search {

// Keeps its memory from one part to the next.
class PartEffects {
  public:
    using State = LineAutomaton::State;
    using Effect = LineAutomaton::Effect;

    // Looks at `max_steps` bytes and symbols of a part, or some of each symbol, to find effects
    // from other states than kStart.
    PartEffects(const LineAutomaton& automaton, WordRule rule, std::size_t max_steps)
        : automaton_(automaton), rule_(rule), max_steps_(max_steps) {}

    // Reads the tokens of a head, whose payload was checked. Returns false if they are not valid.
    // The payload and the tokens must live as long as the part is used.
    bool read_tokens(Bytes payload, std::size_t pool_size, const SegmentTokens& tokens);
    // Whether all tokens, and spaces between words, are idle.
    bool is_idle() const { return is_idle_; }

    // Reads the rules. Returns false if they are not valid, or take too long.
    bool read_rules();

    // Whether the last part took too long.
    bool is_slow() const { return is_slow_; }

    // After read_rules():
    std::size_t num_symbols() const { return head_.num_symbols(); }
    const ClassTable& rank_code() const { return head_.rank_code(); }
    const Facts* facts() const { return facts_.data(); }  // by rank

    // The text of a symbol that is no splitter. kChunkSize bytes after it can be read.
    Bytes text_of(std::uint32_t rank);
    // The first byte of that text.
    std::uint8_t first_byte(std::uint32_t rank);
    // How many line feeds the symbols have, by rank.
    const std::uint16_t* line_feeds();

    // A text, as far as it was read.
    struct Walk {
        State state;
        std::uint32_t num_lines = 0;                       // that match
        Facts before = facts::kSplitter | facts::kBorder;  // those of the symbol before
    };
    // Goes over a symbol that is no splitter. Returns false if that takes too long.
    bool step(Walk& walk, std::uint32_t rank) {
        const Facts of_symbol = facts_[rank];
        if ((walk.before & facts::kWord) != 0 && (of_symbol & facts::kSeparator) == 0) {
            walk.state = automaton_.after_space[walk.state];
        }
        walk.before = of_symbol;
        Effect effect{walk.state, 0};
        if (walk.state == LineAutomaton::kStart) {
            if ((of_symbol & facts::kBusy) != 0) {
                effect = from_start_[rank];
            }
        } else if (walk.state != LineAutomaton::kUndecided &&
                   (walk.state != LineAutomaton::kMatched || (of_symbol & facts::kEndsLine) != 0) &&
                   !find(rank, walk.state, effect)) {
            return false;
        }
        walk.state = effect.state;
        walk.num_lines += effect.num_lines;
        return true;
    }

  private:
    static constexpr std::size_t kMaxFound = 1 << 18;  // effects of a part
    static constexpr std::size_t kFewFound = 1 << 12;

    bool read_local_separators(Bytes bytes);
    bool take_rank(RankCounter& ranks, const TokenEffect& added, std::uint32_t& rank);
    bool set(RankCounter& ranks, const TokenEffect& token);
    bool set_tokens(RankCounter& ranks);
    bool set_rules(RankCounter& ranks);
    bool add_rule(std::size_t rule, std::size_t first_other, TokenEffect& added);

    bool take_steps(std::size_t count) {
        is_slow_ = is_slow_ || steps_left_ < count;
        steps_left_ -= is_slow_ ? 0 : count;
        return !is_slow_;
    }
    bool find(std::uint32_t rank, State state, Effect& effect);
    bool run(std::uint32_t rank, State state, Effect& effect);
    bool run_rule(std::size_t rule, std::size_t first_other, State state, Effect& effect);
    void prepare_find();
    void begin_pool();
    void add_to_pool(std::uint32_t rank);
    void count_line_feeds();
    std::size_t first_rule() const { return num_symbols() - head_.rule_sizes.size(); }
    bool is_rule(std::size_t symbol) const { return symbol >= first_rule(); }
    std::span<const std::uint32_t> other_ranks_of(std::size_t rule) const {
        return head_.other_ranks.subspan(rule_starts_[rule],
                                         std::size_t{head_.rule_sizes[rule]} + 1);
    }
    Bytes bytes_of_token(std::size_t symbol);
    void expand_local_words();
    std::size_t slot_of(std::uint64_t key) const;
    void add_found(std::uint64_t key, const Effect& effect);

    const LineAutomaton& automaton_;
    const WordRule rule_;
    const std::size_t max_steps_;
    HeadArrays head_;
    const SegmentTokens* global_ = nullptr;
    bool is_idle_ = false;
    std::size_t pool_size_ = 0, pool_left_ = 0;
    std::size_t next_symbol_ = 0;
    LargeVector<TokenEffect> local_words_;
    std::vector<TokenEffect> local_separators_;
    Bytes separator_bytes_;
    LargeVector<Facts> facts_;                                // by rank
    LargeVector<std::uint32_t> symbols_;                      // by rank
    std::array<std::uint32_t, kNumClasses> ends_of_classes_;  // of their ranks
    LargeVector<Effect> from_start_;                          // by rank, if it is busy
    std::vector<std::pair<std::uint32_t, Facts>> of_level_;

    // For symbols from other states than kStart:
    std::size_t steps_left_ = 0;
    bool is_slow_ = false;
    bool can_find_ = false, are_words_expanded_ = false;
    LargeVector<std::uint32_t> rule_starts_;  // in the other ranks, by rule
    LargeVector<std::uint8_t> words_;         // the local ones, each with a space
    std::vector<std::uint32_t> word_starts_, separator_starts_;
    LargeVector<std::uint32_t> from_matched_;  // by rank: effects as numbers, or kUnknown
    // The texts of symbols that were asked for.
    bool is_pool_begun_ = false;
    LargeVector<std::uint8_t> pool_;
    LargeVector<std::uint32_t> pool_starts_;  // by rank: where the text begins, or kUnknown
    std::size_t pool_used_ = 0;
    bool are_line_feeds_counted_ = false;
    LargeVector<std::uint16_t> line_feeds_;  // by rank
    // A hash table of keys and effects from the other states. A key is the number of the part, a
    // rank and a state. Items of other parts count as free, so that they need not be cleared.
    static constexpr int kBitsOfKey = 36;
    static_assert(kMaxPartSymbols <= 1 << (kBitsOfKey - 16));
    bool is_of_part(std::uint64_t key) const { return key >> kBitsOfKey == generation_; }
    std::uint64_t generation_ = 0;
    std::vector<std::pair<std::uint64_t, Effect>> found_;
    std::size_t num_found_ = 0;
};

}  // namespace gompfs::search

// What the words and separators of parts do to the states of a LineAutomaton, from the state
// kStart, without expanding words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"
#include "search/grammar/line_automaton.h"
#include "search/grammar/symbol_facts.h"
#include "text/word_section.h"

namespace gompfs::search {

// Finds bytes that leave the state kStart; where there is one from 0x80 on, all of these. A space
// is none of them: words have none.
class LeavingBytes {
  public:
    explicit LeavingBytes(const LineAutomaton& automaton);

    // Bit i says whether byte i of the first 64 leaves. `size`: of what can be read.
    std::uint64_t bits(const std::uint8_t* bytes, std::size_t size) const;

  private:
    std::uint64_t bits_avx2(const std::uint8_t* bytes) const;

    std::array<std::uint8_t, 256> leaves_;
    std::uint8_t low_nibbles_[16] = {}, high_nibbles_[16] = {};
    std::uint32_t others_ = 0;  // ~0 if bytes from 0x80 on leave
    bool uses_avx2_ = false;
};

// A token, and what it does from kStart.
struct TokenEffect {
    Facts facts = facts::kMissing;
    LineAutomaton::Effect effect = {};
};

// `at_end`: the state after the word. `stored_size`: its size, with a space.
TokenEffect effect_of_word(const LineAutomaton& automaton, LineAutomaton::State at_end,
                           std::size_t stored_size);
// Returns nothing if too many lines end in the separator.
std::optional<TokenEffect> effect_of_separator(const LineAutomaton& automaton, Bytes separator);

// The global words and separators of a segment.
class SegmentTokens {
  public:
    // The section must outlive this.
    SegmentTokens(const LineAutomaton& automaton, const WordSection& section, WordRule rule,
                  unsigned num_threads);

    // Whether tokens follow the word rule, as far as parts need it. Others have no use for this.
    bool are_sound() const { return are_sound_; }
    const WordSection& section() const { return section_; }
    std::size_t num_words() const { return words_.size(); }
    std::size_t num_separators() const { return separators_.size(); }
    TokenEffect word(std::uint32_t number) const {
        return {facts_of_words_[number], {words_[number], 0}};
    }
    const TokenEffect& separator(std::uint32_t number) const { return separators_[number]; }

  private:
    void find_words(const LineAutomaton& automaton, std::size_t first, std::size_t end);
    void set_idle(std::size_t first, std::size_t end);

    const WordSection& section_;
    LargeVector<LineAutomaton::State> words_;  // the states after them
    LargeVector<Facts> facts_of_words_;
    std::vector<TokenEffect> separators_;
    bool are_sound_;
};

// Goes through words that are stored without the prefixes that they share with the words before,
// each with a space after it. The states along a word are kept, so the next one begins with that
// after its prefix.
class WordScanner {
  public:
    WordScanner(const LineAutomaton& automaton, Bytes suffixes);

    // Goes to the next word. Returns false if there is none, or if it is not valid.
    bool next(std::uint32_t prefix);
    LineAutomaton::State state() const { return state_; }  // after the word, before its space
    std::size_t stored_size() const { return size_ + 1; }  // with its space
    // The suffixes that were not taken yet.
    Bytes rest() const { return {at_, end_}; }

  private:
    bool load();
    const std::uint8_t* find_space(bool& leaves);

    const LineAutomaton& automaton_;
    const LeavingBytes leaving_;
    const std::uint8_t* at_;  // the next suffix
    const std::uint8_t* const end_;
    const std::uint8_t* chunk_;              // 64 bytes, of which some may be after the end
    std::uint64_t spaces_ = 0, leaves_ = 0;  // bits of its bytes
    std::size_t size_ = 0;                   // of the word
    LineAutomaton::State state_ = LineAutomaton::kStart;
    std::vector<LineAutomaton::State>& states_;  // after each byte of the word; then a margin
};

}  // namespace gompfs::search

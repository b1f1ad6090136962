// A deterministic automaton over bytes that tells which lines of a text match a pattern. It reads
// the tokens of a grammar, so that a text need not be made.
//
// A text is a function: from a state to a state, and how many of the lines that end in it match.
// From the state kMatched on, only the end of the line counts. The automaton is exact, except that
// it enters the state kUndecided, and stays there, where it cannot tell:
// - a match that depends on what is unsure (byte_moves.h): word boundaries, characters outside of
//   ASCII in classes;
// - a NUL, unless files with NULs are searched as text; 0xfe and 0xff, which may be a byte order
//   mark of UTF-16; and 0xef, which may begin that of UTF-8, if that matters.
//
// Few bytes may follow a token: after a word comes a separator, after a separator a word. A state
// that goes on like kStart for all of them is replaced by kStart. So nearly all tokens lead from
// kStart to kStart: they are idle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "search/pattern/pattern_syntax.h"
#include "text/word_rule.h"

namespace gompfs::search {

struct LineAutomaton {
    using State = std::uint16_t;
    static constexpr std::size_t kMaxStates = 2048;
    static constexpr State kStart = 0, kMatched = 1, kUndecided = 2;
    enum class LineEnd : std::uint8_t { no_match, match, unsure };

    // What a text does, from one state.
    struct Effect {
        State state = kStart;
        std::uint16_t num_lines = 0;  // that match, and end in the text
    };

    State next(State state, std::uint8_t byte) const { return moves[state * 256u + byte]; }
    // Returns nothing if more than 65,535 lines match.
    std::optional<Effect> run(Bytes text, State from) const;
    // What the end of a file means in a state.
    LineEnd at_end_of_file(State state) const {
        return state == kUndecided   ? LineEnd::unsure
               : state == line_start ? LineEnd::no_match
                                     : line_ends[state];
    }

    State line_start = kStart;               // at the beginning of a line
    std::vector<State> moves;                // the next state, by state and byte
    std::vector<LineEnd> line_ends;          // by state: whether a line that ends in it matches
    std::vector<State> after_word;           // by state: the state at the border after a word
    std::vector<State> after_separator;      // the same after a separator
    std::vector<State> after_space;          // by state: after the space between two words
    std::array<std::uint8_t, 256> leaves{};  // 1 for bytes that leave kStart
    std::array<std::uint8_t, 256> ends{};  // 1 for bytes that leave kMatched: line feeds, above all
};

// Returns none if the pattern matches nothing as well (the empty string), or if the automaton would
// have too many states. `is_text`: files with NULs are searched as text.
std::optional<LineAutomaton> make_line_automaton(const Node& pattern, WordRule rule, bool is_text);

}  // namespace gompfs::search

// A pattern as a nondeterministic automaton over bytes.
//
// What it does not know of a pattern it takes for granted: that a word boundary is there, that a
// character outside of ASCII is in a class such as \w. Such moves are marked as unsure, and moves
// at the beginnings and ends of lines as such, so that an automaton can tell what certainly
// matches. A match does not have line feeds.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "search/pattern/pattern_syntax.h"

namespace gompfs::search {

using ByteSet = std::bitset<256>;
using NfaState = std::uint32_t;

// From each state, one of the bytes of a set leads to the next state; or states can be entered
// without a byte.
struct ByteMoves {
    enum class Condition : std::uint8_t { none, unsure, line_start, line_end };
    struct Move {  // without a byte
        NfaState to;
        Condition condition;
    };
    struct State {
        ByteSet bytes;
        NfaState next = 0;
        std::vector<Move> others;
    };

    std::vector<State> states;
    NfaState first = 0, last = 0;
};

// How the automaton matches characters outside of ASCII. `loose` takes any bytes from 0x80 on that
// may be a character, which needs few states. `exact` takes only valid UTF-8, where the pattern
// allows every such character; elsewhere it is like `loose`.
enum class Utf8Moves : std::uint8_t { loose, exact };

// Returns none if there would be too many states.
std::optional<ByteMoves> make_byte_moves(const Node& pattern, Utf8Moves utf8);

}  // namespace gompfs::search

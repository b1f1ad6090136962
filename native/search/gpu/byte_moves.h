// A pattern as a nondeterministic automaton over bytes; see byte_automaton.h for what it matches.
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
    struct State {
        ByteSet bytes;
        NfaState next = 0;
        std::vector<NfaState> others;  // entered without a byte
    };

    std::vector<State> states;
    NfaState first = 0, last = 0;
};

// Returns none if there would be too many states.
std::optional<ByteMoves> make_byte_moves(const Node& pattern);

}  // namespace gompfs::search

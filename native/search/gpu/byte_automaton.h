// A deterministic automaton over bytes that finds all matches of a pattern, and more: it is used to
// find texts that must be searched (kernels/search/run_automaton.cu).
//
// The automaton reads the lines of a text, and is in the state kMatchedState after a match has
// ended. Where the pattern says something that the automaton does not know, it takes everything:
// assertions (\b, ^, $) always hold; a character outside of ASCII that a class, a dot or a caseless
// letter may match is any such character. A match does not have line feeds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "search/pattern/pattern_syntax.h"
#include "shared/search_tables.h"

namespace gompfs::search {

struct ByteAutomaton {
    static constexpr std::size_t kMaxStates = 4096;

    std::uint32_t num_states = 0, num_classes = 0;
    std::array<std::uint8_t, 256> classes{};  // of bytes
    std::vector<std::uint16_t> transitions;   // the next state, by state and class
};

// Returns none if the automaton would have too many states, or if the pattern matches nothing as
// well (the empty string), so that every line has a match.
std::optional<ByteAutomaton> make_byte_automaton(const Node& pattern);

}  // namespace gompfs::search

// The tables that the kernels of kernels/search read, as native/search builds them: a header, then
// arrays, whose offsets in the header count from its beginning.
//
// CUDA and C++ both include this file.
#pragma once

#include "shared/host_device.h"

namespace gompfs {

// A set of literals. Of each literal, `window_size` bytes (the same number for all) are chosen, as
// rare as possible. Bits of a bitmap say which windows there may be: two bits for each. A hash
// table has the windows, and a chain of the literals of each window.
struct LiteralTable {
    unsigned window_size;  // 1 to 4
    unsigned case_bits;    // 0x20 in each byte of the window if case does not matter, else 0
    unsigned bitmap_log2;  // number of bits
    unsigned slots_log2;
    unsigned bitmap;    // words of 32 bits
    unsigned slots;     // LiteralSlot
    unsigned literals;  // TableLiteral
    unsigned pool;      // the bytes of all literals
};

struct LiteralSlot {
    unsigned window;
    unsigned first;  // index of a literal plus 1; 0 in a free slot
};

struct TableLiteral {
    unsigned begin, size;    // in the pool
    unsigned window_offset;  // of the window in the literal
    unsigned next;           // the next literal with this window, plus 1; or 0
};

// The two hashes of a window; their highest bits count.
GOMPFS_FUNCTION unsigned window_hash(unsigned window) { return window * 0x9e3779b1u; }
GOMPFS_FUNCTION unsigned other_window_hash(unsigned window) {
    return (window ^ window >> 15) * 0x85ebca6bu;
}

// A deterministic automaton over the bytes of a text. It begins in state 0 at the beginning of each
// line. It enters the state kMatched when a match has ended, and goes on from there as from state
// 0.
struct AutomatonTable {
    unsigned num_states, num_classes;
    unsigned char classes[256];  // of bytes; a line feed has a class of its own
    // then 16-bit numbers: the next state, by state and class
};

constexpr unsigned kMatchedState = 1;

}  // namespace gompfs

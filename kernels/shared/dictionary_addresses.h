// Matches from a shared dictionary in gompresso-bit-dictionary, as decoders and the encoder
// represent them: a match offset with the bit kFromDictionary, and the address in the dictionary in
// its other bits.
//
// CUDA and C++ both include this file.
#pragma once

#include "shared/format_constants.h"
#include "shared/host_device.h"

namespace gompfs {

constexpr unsigned kFromDictionary = 1u << 31;

// The addresses that an offset symbol of the dictionary stands for: the first one, and how many
// extra bits follow its codeword.
constexpr unsigned kFirstDictionarySymbol = kNumOffsetSymbols;
GOMPFS_FUNCTION unsigned dictionary_extra_bits(unsigned symbol) {
    return (symbol - kFirstDictionarySymbol) / 4;
}
GOMPFS_FUNCTION unsigned first_dictionary_address(unsigned symbol) {
    return ((4 + (symbol - kFirstDictionarySymbol) % 4) << dictionary_extra_bits(symbol)) - 4;
}

}  // namespace gompfs

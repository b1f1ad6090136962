// The codecs of docs/format.md, and the options of an encoder.
#pragma once

#include <cstdint>

#include "codec/parse/parser.h"

namespace gompfs {

// The head of a part of text has a codec of its own; it is no block of a stream. Users never name
// gompresso_bit_dictionary: blocks of gompresso_bit get it if their encoder has a dictionary.
enum class Codec : std::uint8_t {
    stored = 0,
    gompresso_byte = 1,
    gompresso_bit = 2,
    gompresso_tadoc = 3,
    head = 4,
    gompresso_bit_dictionary = 5
};

// Larger groups compress less (docs/decisions/0001-groups-of-four.md).
constexpr int kDefaultGroupSizeLog2 = 2;

struct EncodeOptions {
    Codec codec;
    int level;  // kMinLevel (fastest) to kMaxLevel (smallest)
    bool dependency_elimination;
    int group_size_log2 = kDefaultGroupSizeLog2;
    bool strict_sources = false;  // for experiments, see ParserLimits
    // With gompresso_bit: where matches may also come from. The encoder does not own it.
    const DictionarySearch* dictionary = nullptr;
};

}  // namespace gompfs

// The header fields of a grammar section, for its writer and its reader.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar/grammar.h"

namespace gompfs {

constexpr std::uint8_t kSectionMagic[4] = {'G', 'G', 'R', 'M'};
constexpr std::uint16_t kSectionVersion = 1;
constexpr std::size_t kSectionHeaderSize = 32;
constexpr std::uint32_t kPartContinues = 1;  // a flag of a part

struct SectionHeader {
    WordRule word_rule;
    BuilderKind builder;
    std::uint32_t num_words;
    std::uint32_t num_parts;
};

}  // namespace gompfs

// Writes the pieces of a grammar section (docs/format.md) in their order: the header, the three
// streams of the dictionary (DictionaryRange), then for each part its head and its rules.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/section.h"

namespace gompfs {

std::vector<std::uint8_t> write_header(const SectionHeader& header);
std::vector<std::uint8_t> write_part_head(const PartHead& part);
std::vector<std::uint8_t> write_rules(const Rules& rules, std::uint64_t num_words);

}  // namespace gompfs

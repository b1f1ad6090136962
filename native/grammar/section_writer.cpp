// Writes the pieces of a grammar section; section_reader.cpp reads them. docs/format.md describes
// the format.
#include "grammar/section_writer.h"

#include "common/little_endian.h"
#include "grammar/numbers.h"

namespace gompfs {
namespace {

// Appends a difference of either sign as a small number: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
void append_difference(std::vector<std::uint8_t>& bytes, std::uint64_t from, std::uint64_t to) {
    const auto difference = static_cast<std::int64_t>(to - from);
    append_number(bytes, static_cast<std::uint64_t>(difference) << 1 ^
                             static_cast<std::uint64_t>(difference >> 63));
}

}  // namespace

std::vector<std::uint8_t> write_header(const SectionHeader& header) {
    std::vector<std::uint8_t> bytes(kSectionMagic, kSectionMagic + sizeof kSectionMagic);
    append(bytes, kSectionVersion);
    append(bytes, static_cast<std::uint8_t>(header.word_rule));
    append(bytes, static_cast<std::uint8_t>(header.builder));
    append(bytes, header.num_words);
    append(bytes, header.num_parts);
    bytes.resize(kSectionHeaderSize);
    return bytes;
}

std::vector<std::uint8_t> write_part_head(const PartHead& part) {
    std::vector<std::uint8_t> bytes;
    append_number(bytes, part.continues ? kPartContinues : 0);
    append_number(bytes, part.num_tokens);
    append_number(bytes, part.inos.size());
    std::uint64_t previous = 0;
    for (const std::uint64_t ino : part.inos) {
        append_difference(bytes, previous, ino);
        previous = ino;
    }
    append_number(bytes, part.words.size());
    previous = 0;
    for (const std::uint32_t number : part.words) {
        append_difference(bytes, previous, number);
        previous = number;
    }
    return bytes;
}

std::vector<std::uint8_t> write_rules(const Rules& rules, std::uint64_t num_words) {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(rules.symbols.size() * 3);
    const std::uint64_t num_rules = rules.size();
    append_number(bytes, num_rules);
    for (std::uint32_t rule = 0; rule < num_rules; ++rule) {
        append_number(bytes, rules.starts[rule + 1] - rules.starts[rule]);
    }
    // Words are odd. Rules are even and counted from the last one, which tends to be used most.
    for (const Symbol symbol : rules.symbols) {
        if (symbol == kSplitter) {
            bytes.push_back(0);
        } else {
            append_number(bytes, symbol < num_words ? 2 * std::uint64_t{symbol} + 1
                                                    : 2 * (num_words + num_rules - symbol));
        }
    }
    bytes.shrink_to_fit();
    return bytes;
}

}  // namespace gompfs

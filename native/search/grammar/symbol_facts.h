// What is known of a symbol of a part without expanding it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gompfs::search {

// Facts of a symbol, in one number: its size, with the space of a word, and flags.
using Facts = std::uint32_t;
namespace facts {
constexpr Facts kSize = 0xffff;
constexpr Facts kBusy = 1u << 16;       // not idle
constexpr Facts kEndsLine = 1u << 17;   // has a byte that leaves kMatched
constexpr Facts kSeparator = 1u << 18;  // begins with a separator; or a splitter
constexpr Facts kWord = 1u << 19;       // ends with a word
constexpr Facts kSplitter = 1u << 20;
constexpr Facts kMissing = 1u << 21;  // there is no such symbol
// A separator may follow: it ends with a word, or is a splitter.
constexpr Facts kBorder = 1u << 22;
constexpr Facts kLineFeed = 1u << 23;  // has a line feed

// kSeparator if the space at the end of `before` is taken away when a symbol follows it, else 0.
constexpr Facts takes_space(Facts before, Facts symbol) {
    return before / (kWord / kSeparator) & symbol & kSeparator;
}
// Not 0 if the symbol begins with a separator, and the one before ends with one.
constexpr Facts is_adjacent(Facts before, Facts symbol) {
    return ~(before / (kBorder / kSeparator)) & symbol & kSeparator;
}
}  // namespace facts

// Adds the sizes of symbols up to the first splitter to `size`. There must be a symbol before them.
// `adjacent` is not 0 then if separators are next to each other. Returns the index of the splitter,
// or the number of symbols.
std::size_t add_sizes(const Facts* symbols, std::size_t count, std::uint64_t& size,
                      Facts& adjacent);

// The index of the first symbol that has some of these facts, or the number of symbols.
std::size_t find_facts(const Facts* symbols, std::size_t count, Facts wanted);

}  // namespace gompfs::search

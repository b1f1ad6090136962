// Sorting words into byte order by eight of their bytes at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gompfs {

// The first eight bytes of a text as a number, with zeros behind its end.
std::uint64_t word_head(std::string_view text);

struct WordHead {
    std::uint64_t head;
    std::uint32_t number;

    WordHead(std::string_view word, std::uint32_t number_of_word)
        : head(word_head(word)), number(number_of_word) {}
};

// Sorts some words of all `words`, given by the heads of what follows the first `depth` bytes,
// which they have in common.
void sort_heads(std::span<WordHead> heads, const std::vector<std::string_view>& words,
                std::size_t depth = 0);

}  // namespace gompfs

// Sorts words by byte order, comparing eight bytes at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gompfs {

// The first eight bytes of a text as a number that compares as the bytes do, padded with zeros.
std::uint64_t word_head(std::string_view text);

struct WordHead {
    std::uint64_t head;
    std::uint32_t number;

    WordHead(std::string_view word, std::uint32_t number_of_word)
        : head(word_head(word)), number(number_of_word) {}
};

// Sorts some of `words`, which are equal in their first `depth` bytes. Each head is that of the
// bytes after these.
void sort_heads(std::span<WordHead> heads, const std::vector<std::string_view>& words,
                std::size_t depth = 0);

}  // namespace gompfs

// Sorts words by byte order, comparing eight bytes at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gompfs {

// The first eight bytes of a text as a number that compares as the bytes do, padded with zeros.
std::uint64_t word_prefix(std::string_view text);

struct WordPrefix {
    std::uint64_t prefix;
    std::uint32_t number;

    WordPrefix(std::string_view word, std::uint32_t number_of_word)
        : prefix(word_prefix(word)), number(number_of_word) {}
};

// Sorts some of `words`, which are equal in their first `depth` bytes. Each prefix is of the
// bytes after these.
void sort_prefixes(std::span<WordPrefix> prefixes, const std::vector<std::string_view>& words,
                   std::size_t depth = 0);

}  // namespace gompfs

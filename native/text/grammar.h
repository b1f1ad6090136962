// A word grammar in memory, as the statistics use it: a dictionary, and parts that are independent
// grammars.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/large_vector.h"
#include "text/symbols.h"
#include "text/word_rule.h"

namespace gompfs {

// The limit on the number of words of a text: weights of rules must fit into 64 bits.
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 62;

// All different words in byte order. The number of a word is its index here.
struct Dictionary {
    LargeVector<std::uint64_t> starts{0};  // size() + 1 offsets in bytes
    LargeVector<char> bytes;

    std::uint32_t size() const { return static_cast<std::uint32_t>(starts.size() - 1); }
    std::string_view word(std::uint32_t number) const {
        return {bytes.data() + starts[number], starts[number + 1] - starts[number]};
    }
    // The number of words that are before a text in byte order.
    std::uint32_t lower_bound(std::string_view text) const;
};

// The grammar of consecutive files. Symbols below words.size() are indexes in `words`, which has
// numbers in the dictionary. The root rule has a splitter after every file.
struct Part {
    bool continues = false;        // whether its first file began in the part before
    std::uint64_t num_tokens = 0;  // number of words of its text, with repetitions
    std::vector<std::uint64_t> inos;
    std::vector<std::uint32_t> words;  // numbers in the dictionary
    Rules rules;
};

struct Grammar {
    WordRule word_rule = WordRule::whitespace;
    Dictionary dictionary;
    std::vector<Part> parts;

    std::uint64_t size_in_memory() const;  // in bytes
};

}  // namespace gompfs

// A word grammar as analytics use it: a dictionary, and parts that are grammars of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/large_vector.h"
#include "grammar/symbols.h"

namespace gompfs {

// Weights of rules must fit into 64 bits.
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 62;

// Words in byte order, each once; the number of a word is its place.
struct Dictionary {
    LargeVector<std::uint64_t> starts{0};  // size() + 1 places in bytes
    LargeVector<char> bytes;

    std::uint32_t size() const { return static_cast<std::uint32_t>(starts.size() - 1); }
    std::string_view word(std::uint32_t number) const {
        return {bytes.data() + starts[number], starts[number + 1] - starts[number]};
    }
    // How many words are before a text in byte order.
    std::uint32_t lower_bound(std::string_view text) const;
};

// What a part says of its text, before its rules.
struct PartHead {
    bool continues = false;        // its first file began in the part before
    std::uint64_t num_tokens = 0;  // words of its text, repetitions counted
    std::vector<std::uint64_t> inos;
    std::vector<std::uint32_t> words;  // places in the dictionary
};

// The grammar of some files in a row. Its symbols number the words of the part; `words` leads from
// there to the dictionary. The root rule holds a splitter behind every file.
struct Part : PartHead {
    Rules rules;
};

// `none` makes no rules: the root alone holds all words. No section has such a grammar.
enum class BuilderKind : std::uint8_t { repair = 0, sequitur = 1, none = 2 };

struct Grammar {
    bool words_of_characters = false;  // see Tokenizer
    BuilderKind builder = BuilderKind::repair;
    Dictionary dictionary;
    std::vector<Part> parts;
};

// The pieces of the grammar section (docs/format.md), in their order: the header, the three streams
// of the dictionary (DictionaryRange), then for each part its head and its rules.
struct SectionHeader {
    bool words_of_characters;
    BuilderKind builder;
    std::uint32_t num_words;
    std::uint32_t num_parts;
};
std::vector<std::uint8_t> write_header(const SectionHeader& header);
std::vector<std::uint8_t> write_part_head(const PartHead& part);
std::vector<std::uint8_t> write_rules(const Rules& rules, std::uint64_t num_words);

}  // namespace gompfs

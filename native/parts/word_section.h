// The section `words` of a segment: the words and separators that several parts of it use
// (docs/format.md). A part of text refers to them by their numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/codec.h"

namespace gompfs {

// Byte strings one after another; string i has the bytes [starts[i], starts[i + 1]).
class TokenList {
  public:
    std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    std::string_view operator[](std::uint32_t number) const {
        return {bytes_.data() + starts_[number], starts_[number + 1] - starts_[number]};
    }
    // Throws std::length_error if all tokens have 4 GiB or more.
    void append(std::string_view token);
    void reserve(std::size_t num_tokens, std::size_t num_bytes);

  private:
    friend class WordSection;
    std::vector<std::uint32_t> starts_{0};
    std::vector<char> bytes_;
};

class WordSection {
  public:
    WordSection() = default;
    WordSection(TokenList words, TokenList separators)
        : words_(std::move(words)), separators_(std::move(separators)) {}
    // Reads a section. Throws std::invalid_argument if it is not valid, or if its words together
    // have more than max_bytes.
    WordSection(Bytes section, std::uint64_t max_bytes);

    const TokenList& words() const { return words_; }
    const TokenList& separators() const { return separators_; }

  private:
    void read_words(Bytes prefixes, Bytes& rest, std::uint64_t max_bytes);
    void read_separators(Bytes sizes, Bytes rest);

    TokenList words_, separators_;
};

std::vector<std::uint8_t> write_word_section(const WordSection& section);

}  // namespace gompfs

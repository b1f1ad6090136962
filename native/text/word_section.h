// The section `words` of a segment: the words and separators that several parts of it use
// (docs/format.md). A part of text refers to them by their numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"

namespace gompfs {

// Byte strings one after another. A list of words has a space after each of them.
class TokenList {
  public:
    enum class Kind : bool { separators, words };

    explicit TokenList(Kind kind = Kind::separators) : space_(kind == Kind::words ? 1 : 0) {}

    std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    bool has_spaces() const { return space_ != 0; }
    std::string_view operator[](std::uint32_t number) const {
        return {reinterpret_cast<const char*>(bytes_.data()) + starts_[number],
                starts_[number + 1] - starts_[number] - space_};
    }
    // A token, with its space if it is a word.
    Bytes stored(std::uint32_t number) const {
        return {bytes_.data() + starts_[number], starts_[number + 1] - starts_[number]};
    }
    // The offset of each token in bytes(), with its space if it is a word; then the end of the
    // last.
    std::span<const std::uint32_t> starts() const { return starts_; }
    Bytes bytes() const { return bytes_; }
    const std::uint8_t* bytes_end() const { return bytes_.data() + bytes_.size(); }
    // Fetch to the cache what `stored` reads. The second of them reads what the first one fetches.
    void prefetch_start(std::uint32_t number) const { __builtin_prefetch(&starts_[number]); }
    void prefetch_bytes(std::uint32_t number) const {
        __builtin_prefetch(bytes_.data() + starts_[number]);
    }

    // Whether all tokens would have at most max_bytes with this one.
    bool has_room(std::string_view token, std::uint32_t max_bytes = ~std::uint32_t{0}) const {
        return bytes_.size() + token.size() + space_ <= max_bytes;
    }
    friend bool operator==(const TokenList& left, const TokenList& right) {
        return std::ranges::equal(left.starts(), right.starts()) &&
               std::ranges::equal(left.bytes(), right.bytes());
    }

    // Throws std::length_error if all tokens have 4 GiB or more.
    void append(std::string_view token);
    void reserve(std::size_t num_tokens, std::size_t num_bytes);

  private:
    friend class WordSection;
    std::uint32_t space_;  // bytes after each token
    LargeVector<std::uint32_t> starts_{0};
    LargeVector<std::uint8_t> bytes_;
};

class WordSection {
  public:
    WordSection() = default;
    WordSection(TokenList words, TokenList separators)
        : words_(std::move(words)), separators_(std::move(separators)) {}
    // Reads a section. Throws std::invalid_argument if it is not valid, or if its words together
    // have more than max_bytes.
    WordSection(Bytes section, std::uint64_t max_bytes, unsigned num_threads = 1);

    const TokenList& words() const { return words_; }
    const TokenList& separators() const { return separators_; }

  private:
    void read_words(Bytes prefixes, Bytes& rest, std::uint64_t max_bytes, unsigned num_threads);
    void read_separators(Bytes sizes, Bytes rest);

    TokenList words_{TokenList::Kind::words}, separators_;
};

std::vector<std::uint8_t> write_word_section(const WordSection& section);

}  // namespace gompfs

// Reads and writes the section `words`; see word_section.h.
//
// Words are stored without the prefix that they share with the word before, and each ends with a
// space. The length of a prefix is one byte, and 0 at every 256th word.
#include "parts/word_section.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "common/little_endian.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::size_t kHeaderSize = 8;
constexpr std::size_t kMaxPrefix = 255;

void require(bool condition) {
    if (!condition) {
        throw std::invalid_argument("the section of words is damaged");
    }
}

std::size_t shared_prefix(std::string_view left, std::string_view right) {
    const std::size_t limit = std::min({left.size(), right.size(), kMaxPrefix});
    return static_cast<std::size_t>(
        std::mismatch(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(limit),
                      right.begin())
            .first -
        left.begin());
}

}  // namespace

void TokenList::append(std::string_view token) {
    if (token.size() > ~std::uint32_t{0} - bytes_.size()) {
        throw std::length_error("the words of a segment have 4 GiB or more");
    }
    bytes_.insert(bytes_.end(), token.begin(), token.end());
    starts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

void TokenList::reserve(std::size_t num_tokens, std::size_t num_bytes) {
    starts_.reserve(num_tokens + 1);
    bytes_.reserve(num_bytes);
}

WordSection::WordSection(Bytes section, std::uint64_t max_bytes) {
    require(section.size() >= kHeaderSize);
    const std::uint64_t num_words = load<std::uint32_t>(&section[0]);
    const std::uint64_t num_separators = load<std::uint32_t>(&section[4]);
    Bytes rest = section.subspan(kHeaderSize);
    // Each word has a byte for its prefix and a space.
    require(2 * num_words <= rest.size());
    const Bytes prefixes = rest.first(num_words);
    rest = rest.subspan(num_words);
    read_words(prefixes, rest, std::min<std::uint64_t>(max_bytes, ~std::uint32_t{0}));
    require(3 * num_separators <= rest.size());
    read_separators(rest.first(2 * num_separators), rest.subspan(2 * num_separators));
}

void WordSection::read_words(Bytes prefixes, Bytes& rest, std::uint64_t max_bytes) {
    words_.reserve(prefixes.size(), std::min<std::uint64_t>(rest.size() * 2, max_bytes));
    std::string_view before;
    for (std::size_t number = 0; number < prefixes.size(); ++number) {
        const std::size_t prefix = prefixes[number];
        const auto* const end =
            static_cast<const std::uint8_t*>(std::memchr(rest.data(), ' ', rest.size()));
        require(end != nullptr && prefix <= before.size() &&
                (prefix == 0 || number % kWordRestart != 0));
        const auto size = static_cast<std::size_t>(end - rest.data());
        require(prefix + size != 0 && prefix + size < kMaxExpansionSize);
        auto& bytes = words_.bytes_;
        if (prefix + size > max_bytes - bytes.size()) {
            throw std::invalid_argument("the section of words stands for too many bytes");
        }
        const std::size_t start = bytes.size();
        bytes.resize(start + prefix + size);
        std::memcpy(&bytes[start], &bytes[start] - before.size(), prefix);
        std::memcpy(&bytes[start + prefix], rest.data(), size);
        words_.starts_.push_back(static_cast<std::uint32_t>(bytes.size()));
        before = {&bytes[start], prefix + size};
        rest = rest.subspan(size + 1);
    }
}

void WordSection::read_separators(Bytes sizes, Bytes rest) {
    separators_.reserve(sizes.size() / 2, rest.size());
    for (std::size_t at = 0; at < sizes.size(); at += 2) {
        const std::size_t size = load<std::uint16_t>(&sizes[at]);
        require(size != 0 && size <= rest.size());
        separators_.append({reinterpret_cast<const char*>(rest.data()), size});
        rest = rest.subspan(size);
    }
    require(rest.empty());
}

std::vector<std::uint8_t> write_word_section(const WordSection& words_and_separators) {
    const TokenList& words = words_and_separators.words();
    const TokenList& separators = words_and_separators.separators();
    std::vector<std::uint8_t> section(kHeaderSize + words.size());
    store(&section[0], words.size());
    store(&section[4], separators.size());
    std::string_view before;
    for (std::uint32_t number = 0; number < words.size(); ++number) {
        const std::string_view word = words[number];
        const std::size_t prefix = number % kWordRestart == 0 ? 0 : shared_prefix(before, word);
        section[kHeaderSize + number] = static_cast<std::uint8_t>(prefix);
        section.insert(section.end(), word.begin() + static_cast<std::ptrdiff_t>(prefix),
                       word.end());
        section.push_back(' ');
        before = word;
    }
    for (std::uint32_t number = 0; number < separators.size(); ++number) {
        append(section, static_cast<std::uint16_t>(separators[number].size()));
    }
    for (std::uint32_t number = 0; number < separators.size(); ++number) {
        const std::string_view separator = separators[number];
        section.insert(section.end(), separator.begin(), separator.end());
    }
    return section;
}

}  // namespace gompfs

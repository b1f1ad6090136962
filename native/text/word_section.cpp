// Reads and writes the section `words`; see word_section.h.
//
// Words are stored without the prefix that they share with the word before, and each ends with a
// space. The length of a prefix is one byte, and 0 at every 256th word: these groups of words are
// read independently, on several threads.
#include "text/word_section.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>

#include "common/failures.h"
#include "common/little_endian.h"
#include "common/shared_prefix.h"
#include "shared/format_constants.h"
#include "text/word_expander.h"

namespace gompfs {
namespace {

constexpr std::size_t kHeaderSize = 8;
constexpr std::size_t kMaxPrefix = 255;
constexpr std::size_t kGroupsAtOnce = 64;  // that a thread reads

void require(bool condition) {
    if (!condition) {
        throw std::invalid_argument("the section of words is damaged");
    }
}

// Words that begin with a restart: where their suffixes are, and where their expansions begin.
struct WordGroup {
    const std::uint8_t* suffixes;
    std::uint64_t start;
};

// Finds the groups of all words, and the end of the last one.
std::vector<WordGroup> find_groups(Bytes prefixes, Bytes rest) {
    std::vector<WordGroup> groups{{rest.data(), 0}};
    groups.reserve(prefixes.size() / kWordRestart + 2);
    SpaceFinder finder(rest);
    for (std::size_t word = 0; word < prefixes.size(); word += kWordRestart) {
        const Bytes of_group =
            prefixes.subspan(word, std::min<std::size_t>(kWordRestart, prefixes.size() - word));
        const std::uint8_t* const last_space = finder.skip(of_group.size());
        require(last_space != nullptr);
        const auto size = static_cast<std::uint64_t>(last_space + 1 - groups.back().suffixes);
        const std::uint64_t start =
            std::accumulate(of_group.begin(), of_group.end(), groups.back().start + size);
        groups.push_back({last_space + 1, start});
    }
    return groups;
}

// Expands the words of a group. Sets where each of them ends. Returns false if they are not valid.
bool expand_group(const WordGroup* group, Bytes prefixes, std::uint32_t* ends, std::uint8_t* words,
                  std::vector<std::uint8_t>& buffer) {
    // The expander may write after the end of the group, where another thread writes.
    const std::size_t size = group[1].start - group[0].start;
    buffer.resize(std::max(buffer.size(), size + WordExpander::kMargin));
    // Words that are too long for a head are read too: only heads that refer to them are damaged.
    WordExpander expander({group[0].suffixes, group[1].suffixes}, size);
    std::size_t at = 0;
    for (std::size_t index = 0; index < prefixes.size(); ++index) {
        const std::size_t expanded =
            expander.expand(prefixes[index], buffer.data() + at, size - at);
        if (expanded == 0) {
            return false;
        }
        at += expanded;
        ends[index] = static_cast<std::uint32_t>(group[0].start + at);
    }
    std::copy_n(buffer.begin(), size, words + group[0].start);
    return true;
}

}  // namespace

void TokenList::append(std::string_view token) {
    if (!has_room(token)) {
        throw std::length_error("the words of a segment have 4 GiB or more");
    }
    const std::size_t start = bytes_.size();
    bytes_.resize(start + token.size() + space_);
    std::copy(token.begin(), token.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(start));
    if (space_ != 0) {
        bytes_.back() = ' ';
    }
    starts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

void TokenList::reserve(std::size_t num_tokens, std::size_t num_bytes) {
    starts_.reserve(num_tokens + 1);
    bytes_.reserve(num_bytes);
}

WordSection::WordSection(Bytes section, std::uint64_t max_bytes, unsigned num_threads) {
    require(section.size() >= kHeaderSize);
    const std::uint64_t num_words = load<std::uint32_t>(&section[0]);
    const std::uint64_t num_separators = load<std::uint32_t>(&section[4]);
    Bytes rest = section.subspan(kHeaderSize);
    // Each word has a byte for its prefix and a space.
    require(2 * num_words <= rest.size());
    const Bytes prefixes = rest.first(num_words);
    rest = rest.subspan(num_words);
    read_words(prefixes, rest, max_bytes, num_threads);
    require(3 * num_separators <= rest.size());
    read_separators(rest.first(2 * num_separators), rest.subspan(2 * num_separators));
}

// Reads words and takes their suffixes from `rest`.
void WordSection::read_words(Bytes prefixes, Bytes& rest, std::uint64_t max_bytes,
                             unsigned num_threads) {
    const std::vector<WordGroup> groups = find_groups(prefixes, rest);
    const std::size_t num_bytes = groups.back().start;
    if (num_bytes - prefixes.size() > max_bytes || num_bytes > ~std::uint32_t{0}) {
        throw std::invalid_argument("the section of words stands for too many bytes");
    }
    words_.bytes_.resize(num_bytes);
    words_.starts_.resize(prefixes.size() + 1);
    std::atomic<bool> valid = true;
    const std::size_t num_groups = groups.size() - 1;
    parallel_for_all(
        (num_groups + kGroupsAtOnce - 1) / kGroupsAtOnce, num_threads, [&](std::size_t index) {
            std::vector<std::uint8_t> buffer;
            const std::size_t first = index * kGroupsAtOnce;
            const std::size_t end = std::min(first + kGroupsAtOnce, num_groups);
            for (std::size_t group = first; group < end; ++group) {
                const std::size_t word = group * kWordRestart;
                const std::size_t count =
                    std::min<std::size_t>(kWordRestart, prefixes.size() - word);
                if (!expand_group(&groups[group], prefixes.subspan(word, count),
                                  &words_.starts_[word + 1], words_.bytes_.data(), buffer)) {
                    valid = false;
                }
            }
        });
    require(valid);
    rest = rest.subspan(static_cast<std::size_t>(groups.back().suffixes - groups.front().suffixes));
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
        const std::size_t prefix =
            number % kWordRestart == 0 ? 0 : shared_prefix(before, word, kMaxPrefix);
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

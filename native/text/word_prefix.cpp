// Implements the sort; see word_prefix.h. Prefixes are sorted as numbers; words with equal prefixes
// are sorted by their next eight bytes, recursively. Small groups and groups that share more than
// 512 bytes are sorted by comparing the words.
#include "text/word_prefix.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gompfs {
namespace {

constexpr std::size_t kPrefixSize = sizeof(std::uint64_t);
// Limit of the recursion: words may share megabytes.
constexpr std::size_t kMaxDepth = 8 * kPrefixSize;

// Sorts words whose prefixes at `depth` are equal.
void sort_equal_prefixes(std::span<WordPrefix> prefixes, const std::vector<std::string_view>& words,
                         std::size_t depth) {
    const auto word = [&](const WordPrefix& prefix) { return words[prefix.number]; };
    if (prefixes.size() < 8 || depth == kMaxDepth) {
        std::sort(prefixes.begin(), prefixes.end(),
                  [&](const WordPrefix& left, const WordPrefix& right) {
                      return word(left).substr(depth) < word(right).substr(depth);
                  });
        return;
    }
    // Words that end within the prefix differ only in the number of their NUL bytes.
    const auto longer = std::partition(
        prefixes.begin(), prefixes.end(),
        [&](const WordPrefix& prefix) { return word(prefix).size() <= depth + kPrefixSize; });
    std::sort(prefixes.begin(), longer, [&](const WordPrefix& left, const WordPrefix& right) {
        return word(left).size() < word(right).size();
    });
    const std::span rest(longer, prefixes.end());
    for (WordPrefix& prefix : rest) {
        prefix.prefix = word_prefix(word(prefix).substr(depth + kPrefixSize));
    }
    sort_prefixes(rest, words, depth + kPrefixSize);
}

}  // namespace

std::uint64_t word_prefix(std::string_view text) {
    std::uint64_t prefix = 0;
    std::memcpy(&prefix, text.data(), std::min(text.size(), kPrefixSize));
    static_assert(std::endian::native == std::endian::little);
    return __builtin_bswap64(prefix);
}

void sort_prefixes(std::span<WordPrefix> prefixes, const std::vector<std::string_view>& words,
                   std::size_t depth) {
    std::sort(
        prefixes.begin(), prefixes.end(),
        [](const WordPrefix& left, const WordPrefix& right) { return left.prefix < right.prefix; });
    for (auto first = prefixes.begin(); first != prefixes.end();) {
        const auto end = std::find_if(first, prefixes.end(), [first](const WordPrefix& other) {
            return other.prefix != first->prefix;
        });
        if (end - first > 1) {
            sort_equal_prefixes({first, end}, words, depth);
        }
        first = end;
    }
}

}  // namespace gompfs

// Implements the sort; see word_head.h. Heads are sorted as numbers; words with equal heads are
// sorted by their next eight bytes, recursively. Small groups and groups that share more than 512
// bytes are sorted by comparing the words.
#include "grammar/word_head.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gompfs {
namespace {

constexpr std::size_t kHeadSize = sizeof(std::uint64_t);
// Limit of the recursion: words may share megabytes.
constexpr std::size_t kMaxDepth = 8 * kHeadSize;

// Sorts words whose heads at `depth` are equal.
void sort_equal_heads(std::span<WordHead> heads, const std::vector<std::string_view>& words,
                      std::size_t depth) {
    const auto word = [&](const WordHead& head) { return words[head.number]; };
    if (heads.size() < 8 || depth == kMaxDepth) {
        std::sort(heads.begin(), heads.end(), [&](const WordHead& left, const WordHead& right) {
            return word(left).substr(depth) < word(right).substr(depth);
        });
        return;
    }
    // Words that end within the head differ only in the number of their NUL bytes.
    const auto longer = std::partition(heads.begin(), heads.end(), [&](const WordHead& head) {
        return word(head).size() <= depth + kHeadSize;
    });
    std::sort(heads.begin(), longer, [&](const WordHead& left, const WordHead& right) {
        return word(left).size() < word(right).size();
    });
    const std::span rest(longer, heads.end());
    for (WordHead& head : rest) {
        head.head = word_head(word(head).substr(depth + kHeadSize));
    }
    sort_heads(rest, words, depth + kHeadSize);
}

}  // namespace

std::uint64_t word_head(std::string_view text) {
    std::uint64_t head = 0;
    std::memcpy(&head, text.data(), std::min(text.size(), kHeadSize));
    static_assert(std::endian::native == std::endian::little);
    return __builtin_bswap64(head);
}

void sort_heads(std::span<WordHead> heads, const std::vector<std::string_view>& words,
                std::size_t depth) {
    std::sort(heads.begin(), heads.end(),
              [](const WordHead& left, const WordHead& right) { return left.head < right.head; });
    for (auto first = heads.begin(); first != heads.end();) {
        const auto end = std::find_if(first, heads.end(), [first](const WordHead& other) {
            return other.head != first->head;
        });
        if (end - first > 1) {
            sort_equal_heads({first, end}, words, depth);
        }
        first = end;
    }
}

}  // namespace gompfs

// Finds the first of many literals; see literal_set_finder.h.
#include "search/match/literal_set_finder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "common/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gompfs::search {
namespace {

constexpr std::uint32_t kFilterBits = 16;
constexpr std::size_t kFirstSlots = 256;
constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;

constexpr std::uint32_t kCaseBits = 0x202020;

}  // namespace

LiteralSetFinder::LiteralSetFinder(const LiteralSet& set)
    : is_caseless_(set.is_caseless),
      num_filtered_(std::min(set.shortest(), kMaxFilteredBytes)),
      filter_((std::size_t{1} << kFilterBits) / 64),
      children_(kFirstSlots),
      depths_{0},
      literals_{kNoLiteral} {
    for (std::uint32_t number = 0; number < set.literals.size(); ++number) {
        add(set.literals[number], number);
    }
    link_suffixes();
    has_buckets_ = set.literals.size() <= kMaxInBuckets && has_avx2();
    if (has_buckets_) {
        fill_buckets(set);
    }
}

// Literals that begin alike share a bucket.
void LiteralSetFinder::fill_buckets(const LiteralSet& set) {
    std::vector<std::string_view> sorted(set.literals.begin(), set.literals.end());
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t number = 0; number < sorted.size(); ++number) {
        const auto bucket = static_cast<std::uint8_t>(1u << number * kNumBuckets / sorted.size());
        for (std::size_t index = 0; index < num_filtered_; ++index) {
            const auto byte = static_cast<std::uint8_t>(sorted[number][index]);
            const bool is_letter = is_caseless_ && byte >= 'a' && byte <= 'z';
            buckets_.lower[index][byte & 15] |= bucket;
            buckets_.upper[index][byte >> 4] |= bucket;
            buckets_.upper[index][(is_letter ? byte ^ 0x20 : byte) >> 4] |= bucket;
        }
    }
    for (std::size_t index = num_filtered_; index < kMaxFilteredBytes; ++index) {
        std::fill_n(buckets_.lower[index], 16, std::uint8_t{255});
        std::fill_n(buckets_.upper[index], 16, std::uint8_t{255});
    }
}

#if defined(__x86_64__)

[[gnu::target("avx2")]] static __m256i twice(const std::uint8_t* table) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}

// Returns the first position at which a literal may begin, or, near the end, one that was not
// looked at.
[[gnu::target("avx2")]] std::size_t LiteralSetFinder::skip_by_buckets(std::string_view text,
                                                                      std::size_t from) const {
    constexpr std::size_t kStep = sizeof(__m256i);
    __m256i lower[kMaxFilteredBytes], upper[kMaxFilteredBytes];
    for (std::size_t index = 0; index < kMaxFilteredBytes; ++index) {
        lower[index] = twice(buckets_.lower[index]);
        upper[index] = twice(buckets_.upper[index]);
    }
    const __m256i low_bits = _mm256_set1_epi8(15);
    std::size_t at = from;
    for (; at + kStep + kMaxFilteredBytes <= text.size(); at += kStep) {
        __m256i found = _mm256_set1_epi8(-1);
        for (std::size_t index = 0; index < kMaxFilteredBytes; ++index) {
            const __m256i bytes =
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + at + index));
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_bits);
            const __m256i low = _mm256_and_si256(bytes, low_bits);
            found =
                _mm256_and_si256(found, _mm256_and_si256(_mm256_shuffle_epi8(lower[index], low),
                                                         _mm256_shuffle_epi8(upper[index], high)));
        }
        const __m256i none = _mm256_cmpeq_epi8(found, _mm256_setzero_si256());
        auto mask = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(none));
        for (; mask != 0; mask &= mask - 1) {
            const std::size_t position = at + static_cast<std::size_t>(std::countr_zero(mask));
            if (may_begin(text, position)) {
                return position;
            }
        }
    }
    return at;
}

#else

std::size_t LiteralSetFinder::skip_by_buckets(std::string_view, std::size_t from) const {
    return from;
}

#endif

void LiteralSetFinder::add(std::string_view literal, std::uint32_t number) {
    const std::uint32_t hash = hash_at(literal, 0);
    filter_[hash / 64] |= std::uint64_t{1} << hash % 64;
    Node node = kRoot;
    for (const char byte : literal) {
        const Node found = child(node, folded(byte));
        node = found != kRoot ? found : add_child(node, folded(byte));
    }
    literals_[node] = std::min(literals_[node], number);
}

LiteralSetFinder::Node LiteralSetFinder::add_child(Node parent, std::uint8_t byte) {
    const auto node = static_cast<Node>(depths_.size());
    depths_.push_back(depths_[parent] + 1);
    literals_.push_back(kNoLiteral);
    if (depths_.size() * 2 > children_.size()) {
        grow_children();
    }
    children_[slot_of(parent, byte)] = {parent, node, byte};
    return node;
}

void LiteralSetFinder::grow_children() {
    std::vector<Child> old(children_.size() * 2);
    old.swap(children_);
    for (const Child& each : old) {
        if (each.node != kRoot) {
            children_[slot_of(each.parent, each.byte)] = each;
        }
    }
}

// The slot of an edge, or a free one where it belongs.
std::size_t LiteralSetFinder::slot_of(Node parent, std::uint8_t byte) const {
    const std::size_t mask = children_.size() - 1;
    std::size_t slot = ((std::uint64_t{parent} << 8 | byte) * kMultiplier >> 32) & mask;
    while (children_[slot].node != kRoot &&
           (children_[slot].parent != parent || children_[slot].byte != byte)) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

// Finds the suffixes of nodes from the shortest ones on.
void LiteralSetFinder::link_suffixes() {
    std::vector<Child> edges;
    std::copy_if(children_.begin(), children_.end(), std::back_inserter(edges),
                 [](const Child& each) { return each.node != kRoot; });
    std::sort(edges.begin(), edges.end(), [&](const Child& left, const Child& right) {
        return depths_[left.node] < depths_[right.node];
    });
    suffixes_.assign(depths_.size(), kRoot);
    endings_.assign(depths_.size(), kRoot);
    for (const Child& edge : edges) {
        if (edge.parent != kRoot) {
            suffixes_[edge.node] = step(suffixes_[edge.parent], edge.byte);
        }
        endings_[edge.node] =
            literals_[edge.node] != kNoLiteral ? edge.node : endings_[suffixes_[edge.node]];
    }
}

// The node of the longest suffix of what was read, with this byte.
LiteralSetFinder::Node LiteralSetFinder::step(Node node, std::uint8_t byte) const {
    for (;; node = suffixes_[node]) {
        const Node next = child(node, byte);
        if (next != kRoot || node == kRoot) {
            return next;
        }
    }
}

std::uint8_t LiteralSetFinder::folded(char byte) const {
    const bool is_upper = byte >= 'A' && byte <= 'Z';
    return static_cast<std::uint8_t>(is_caseless_ && is_upper ? byte | 0x20 : byte);
}

// A hash of the next bytes that are filtered, which the text must have. Without case, it does not
// depend on the bit that tells cases apart.
std::uint32_t LiteralSetFinder::hash_at(std::string_view text, std::size_t at) const {
    std::uint32_t bytes = 0;
    if (text.size() - at >= sizeof bytes) {
        std::memcpy(&bytes, text.data() + at, sizeof bytes);
        bytes &= (std::uint32_t{1} << 8 * num_filtered_) - 1;
    } else {
        std::memcpy(&bytes, text.data() + at, num_filtered_);
    }
    bytes |= is_caseless_ ? kCaseBits : 0;
    return static_cast<std::uint32_t>(bytes * static_cast<std::uint32_t>(kMultiplier)) >>
           (32 - kFilterBits);
}

bool LiteralSetFinder::may_begin(std::string_view text, std::size_t at) const {
    const std::uint32_t hash = hash_at(text, at);
    return (filter_[hash / 64] >> hash % 64 & 1) != 0;
}

std::size_t LiteralSetFinder::next_candidate(std::string_view text, std::size_t from) const {
    std::size_t at = has_buckets_ ? skip_by_buckets(text, from) : from;
    for (; text.size() - at >= num_filtered_; ++at) {
        if (may_begin(text, at)) {
            return at;
        }
    }
    return kNone;
}

// Where the first match at `from` or later begins.
std::size_t LiteralSetFinder::first_match(std::string_view text, std::size_t from) const {
    std::size_t begin = kNone;
    for (std::size_t at = next_candidate(text, from); at != kNone;) {
        Node node = kRoot;
        do {
            node = step(node, folded(text[at]));
            ++at;
            if (endings_[node] != kRoot) {
                begin = std::min(begin, at - depths_[endings_[node]]);
            }
            // Another literal may have begun before, and go on.
            if (begin != kNone && at - depths_[node] >= begin) {
                return begin;
            }
        } while (node != kRoot && at < text.size());
        if (begin != kNone) {
            return begin;
        }
        at = next_candidate(text, at);
    }
    return kNone;
}

Match LiteralSetFinder::match_at(std::string_view text, std::size_t begin) const {
    std::uint32_t literal = kNoLiteral;
    std::size_t end = begin;
    Node node = kRoot;
    for (std::size_t at = begin; at < text.size();) {
        node = child(node, folded(text[at++]));
        if (node == kRoot) {
            break;
        }
        if (literals_[node] < literal) {
            literal = literals_[node];
            end = at;
        }
    }
    return {begin, end};
}

std::optional<Match> LiteralSetFinder::find(std::string_view text, std::size_t from) const {
    const std::size_t begin = first_match(text, std::min(from, text.size()));
    return begin == kNone ? std::nullopt : std::optional(match_at(text, begin));
}

}  // namespace gompfs::search

// The matches of all positions of a block among which the backward parser of gompresso-bit chooses.
// Like the best matches they depend on the block alone, so a GPU can find them all at once
// (kernels/encode/find_candidates.cu).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "codec/parse/best_match.h"
#include "common/bytes.h"
#include "common/cancellation.h"
#include "shared/ways.h"

namespace gompfs {

template <typename Position>
class BitCandidates {
  public:
    void fill(Bytes content, const ParserLimits& limits, const SearchEffort& effort);

    // The match kNearestMatch or kBestMatch at a position.
    WayMatch at(std::uint32_t position, unsigned candidate) const {
        const Words& words = words_[position];
        return unpack_way_match(words[candidate], words.back() >> 16 * candidate & kWayLengthMask);
    }

    // The match from the dictionary; without the bit kFromDictionary, and length 0 if there is
    // none.
    WayMatch from_dictionary(std::uint32_t position) const {
        return from_dictionary_.empty() ? WayMatch{}
                                        : unpack_way_match(from_dictionary_[position], 0);
    }

    // The offset of any candidate; 0 if there is none.
    std::uint32_t offset_at(std::uint32_t position, unsigned candidate) const {
        return candidate == kDictionaryMatch ? from_dictionary(position).offset | kFromDictionary
                                             : words_[position][candidate] & kWayOffsetMask;
    }

    // The cost of the byte at a position as long as no sequences are known.
    int first_literal_cost(std::uint32_t position) const {
        return matches_.literals_cost(position, 1);
    }

  private:
    using Words = std::array<std::uint32_t, kNumCandidates + 1>;

    WayMatch with_repeat(std::uint32_t position, const Match& match) const;
    void search_dictionary(const DictionarySearch& dictionary);

    Bytes content_;
    BestMatches<Position, true> matches_;
    std::vector<Words> words_;
    std::vector<std::uint32_t> from_dictionary_;  // as pack_way_match; empty without a dictionary
};

template <typename Position>
void BitCandidates<Position>::fill(Bytes content, const ParserLimits& limits,
                                   const SearchEffort& effort) {
    content_ = content;
    matches_.start(content, limits,
                   {.chain_length = effort.backward_chain_length,
                    .nice_length = effort.backward_nice_length,
                    .finds_short = true});
    words_.assign(content.size(), Words{});
    CancellationPoint point;
    for (std::uint32_t position = 0; position < num_linked(content); ++position) {
        point();
        const Match best = matches_.best(position);
        Match nearest = matches_.nearest(position, kMaxNearest);
        if (nearest.offset == best.offset) {
            nearest = {};
        }
        const WayMatch first = with_repeat(position, nearest);
        const WayMatch second = with_repeat(position, best);
        words_[position] = {pack_way_match(first), pack_way_match(second),
                            matches_.nearest_short(position),
                            pack_repeat_lengths(first.repeat_length, second.repeat_length)};
    }
    from_dictionary_.clear();
    if (limits.dictionary != nullptr) {
        search_dictionary(*limits.dictionary);
    }
}

// Finds the match from the dictionary that gains most at each position.
template <typename Position>
void BitCandidates<Position>::search_dictionary(const DictionarySearch& dictionary) {
    static_assert(kMaxDictionarySize <= 1 << kWayOffsetBits);
    constexpr std::uint32_t kAhead = 8;
    from_dictionary_.assign(content_.size(), 0);
    const std::size_t num_searchable =
        content_.size() - std::min<std::size_t>(content_.size(), DictionarySearch::kReadLength - 1);
    CancellationPoint point;
    for (std::uint32_t position = 0; position < num_searchable; ++position) {
        point();
        if (position + kAhead < num_searchable) {
            matches_.prefetch(position + kAhead, dictionary);
        }
        const Match match = matches_.better(position, dictionary, {});
        from_dictionary_[position] =
            pack_way_match({match.offset & ~kFromDictionary, match.length, 0, 0});
    }
}

template <typename Position>
WayMatch BitCandidates<Position>::with_repeat(std::uint32_t position, const Match& match) const {
    const auto size = static_cast<std::uint32_t>(content_.size());
    const std::uint32_t end = position + match.length;
    for (std::uint32_t literals = 1; literals <= kMaxRepeatLiterals && match.length != 0;
         ++literals) {
        const std::uint32_t begin = end + literals;
        if (begin + kBitMinMatchLength > size) {
            break;
        }
        const std::uint32_t length =
            common_length(content_.data() + begin - match.offset, content_.data() + begin,
                          std::min<std::uint32_t>(size - begin, kBitMaxMatchLength));
        if (length >= kBitMinMatchLength) {
            return {match.offset, match.length, literals, length};
        }
    }
    return {match.offset, match.length, 0, 0};
}

}  // namespace gompfs

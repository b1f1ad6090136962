// The best match at each position of a block.
//
// All results are functions of the block alone: they depend neither on the parse, nor on the order
// in which positions are asked for. So a CPU may evaluate them only where a parser comes by, and a
// GPU may evaluate them for all positions at once; the parse is the same.
//
// Search
//
// Candidates come from links between positions (position_links.h), nearest first. The first match
// of four bytes is found on the chain of the position itself. A match that is longer must contain
// the four bytes that end one byte after the longest match so far. From then on, the chain of these
// four bytes is followed: it is much shorter than the chain of the first four, because the bytes
// after a match are rarely the same. A search follows at most chain_length links.
//
// Gain
//
// The best match is the one that gains most: the cost of its bytes as literals (literal_costs.h),
// minus the estimated cost of the match. All costs are integers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/parse/dictionary_search.h"
#include "codec/parse/literal_costs.h"
#include "codec/parse/match_length.h"
#include "codec/parse/parser.h"
#include "codec/parse/position_links.h"
#include "common/bytes.h"
#include "shared/dictionary_addresses.h"
#include "shared/match_costs.h"

namespace gompfs {

// When a match before a given end is searched: the most candidates that are passed because they lie
// too near, and the most that are looked at.
constexpr int kMaxPassed = 128;
constexpr int kMaxBefore = 4;

// length is 0 if there is no match.
struct Match {
    std::uint32_t length = 0;
    std::uint32_t offset = 0;
    int gain = 0;
};

template <typename Position, bool kEntropyCoded>
class BestMatches {
  public:
    // Makes the links, and estimates the costs.
    void start(Bytes content, const ParserLimits& limits, const SearchEffort& effort) {
        bytes_ = content.data();
        size_ = static_cast<std::uint32_t>(content.size());
        max_match_length_ = limits.max_match_length;
        max_match_offset_ = limits.max_match_offset;
        chain_length_ = effort.chain_length;
        nice_length_ = static_cast<std::uint32_t>(effort.nice_length);
        has_short_ = effort.finds_short && kShortLength >= limits.min_match_length;
        if (has_short_) {
            link_four_and_three_bytes<kHashBits, kShortHashBits>(content, previous_,
                                                                 nearest_short_);
        } else {
            link_four_bytes<kHashBits>(content, previous_);
        }
        if constexpr (kEntropyCoded) {
            literal_costs_.estimate(content);
        }
    }

    // The best match of at least four bytes.
    Match best(std::uint32_t position) const {
        const std::uint32_t link = previous_[position];
        return link == kNone ? Match{} : best_from(position, link);
    }

    // The best match that is longer than `length` and has at least four bytes.
    Match best_longer(std::uint32_t position, std::uint32_t length) const {
        if (length < kHashedLength) {
            return best(position);
        }
        return length < limit_of(position) ? better_from(position, length, {}, chain_length_)
                                           : Match{};
    }

    // The best match of at least four bytes whose source ends at or before `end`. Looks at few
    // candidates: the others would save less than 0.1% (mean: 0.02%), and the links that a GPU
    // follows here are in no cache.
    Match best_before(std::uint32_t position, std::uint32_t end) const;

    // If the position is in a run, whose bytes repeat at the distance of the nearest link: a match
    // as long as possible with a source that ends at or before `end`. Few links do not lead there.
    Match run_before(std::uint32_t position, std::uint32_t end) const;

    // The nearest match of three bytes, if it gains enough.
    Match best_short(std::uint32_t position) const;

    // The nearest match of at least four bytes, among the `most` nearest positions with the same
    // hash; without its gain.
    Match nearest(std::uint32_t position, int most) const;

    // The offset of the nearest match of three bytes that has no fourth; 0 if there is none.
    std::uint32_t nearest_short(std::uint32_t position) const;

    // The match with this offset, if it has at least min_length bytes. With entropy coding, an
    // offset that repeats the last one costs little.
    Match repeat(std::uint32_t position, std::uint32_t offset) const;

    // The match with this length and offset; none if it gains nothing.
    Match match_of(std::uint32_t position, std::uint32_t length, std::uint32_t offset) const {
        const int gain = gain_of(position, length, offset);
        return gain > 0 ? Match{length, offset, gain} : Match{};
    }

    // The best match of at least four bytes from a dictionary, if it gains more than `match`, else
    // `match`. The position must be followed by DictionarySearch::kReadLength bytes.
    Match better(std::uint32_t position, const DictionarySearch& dictionary,
                 const Match& match) const;

    // The cost of `length` bytes from a position on as literals.
    int literals_cost(std::uint32_t position, std::uint32_t length) const {
        if constexpr (kEntropyCoded) {
            return literal_costs_.of(position, length);
        }
        return static_cast<int>(length) * kPlainLiteralCost;
    }

    void prefetch(std::uint32_t position, const DictionarySearch& dictionary) const {
        dictionary.prefetch(bytes_ + position);
    }

  private:
    static constexpr int kHashBits = sizeof(Position) == 2 ? kNarrowHashBits : kWideHashBits;
    static constexpr Position kNone = kNoLink<Position>;

    Match best_from(std::uint32_t position, std::uint32_t link) const;
    Match better_from(std::uint32_t position, std::uint32_t length, Match found,
                      int num_steps) const;
    std::uint32_t word(std::uint32_t position) const {
        return load<std::uint32_t>(bytes_ + position);
    }
    std::uint32_t limit_of(std::uint32_t position) const {
        return std::min(size_ - position, max_match_length_);
    }

    // The cost of an address in a dictionary: its symbol has a codeword, and a bit less than the
    // bits of the address follow.
    static int address_cost(std::uint32_t address) {
        return kCostOfBit * (2 + bits_of(address + 4));
    }
    int gain_of(std::uint32_t position, std::uint32_t length, std::uint32_t offset) const {
        return literals_cost(position, length) - match_length_cost<kEntropyCoded>(length) -
               match_offset_cost<kEntropyCoded>(offset);
    }

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint32_t max_match_length_ = 0;
    std::uint32_t max_match_offset_ = 0;
    int chain_length_ = 0;
    std::uint32_t nice_length_ = 0;
    bool has_short_ = false;
    LiteralCosts literal_costs_;
    PositionLinks<Position> previous_;
    PositionLinks<Position> nearest_short_;
};

// Searches from the first link of the position on.
template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::best_from(std::uint32_t position,
                                                      std::uint32_t link) const {
    const std::uint32_t first_word = word(position);
    int num_steps = chain_length_;
    while (word(link) != first_word) {
        link = previous_[link];
        if (--num_steps <= 0 || link == kNone) {
            return {};
        }
    }
    if (position - link > max_match_offset_) {
        return {};
    }
    const std::uint32_t length =
        common_length(bytes_ + link, bytes_ + position, limit_of(position), kHashedLength);
    return better_from(position, length, match_of(position, length, position - link), num_steps);
}

// Looks at num_steps candidates for a match that is longer than `length`, at least four, and gains
// more than `found`.
template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::better_from(std::uint32_t position,
                                                        std::uint32_t length, Match found,
                                                        int num_steps) const {
    const std::uint8_t* const here = bytes_ + position;
    const std::uint32_t limit = limit_of(position);
    const std::uint32_t nice_length = std::min(limit, nice_length_);
    const std::uint32_t first_word = word(position);
    while (length < nice_length) {
        const auto shift = static_cast<std::uint32_t>(length - kHashedLength + 1);
        const std::uint32_t last_word = word(position + shift);
        std::uint32_t link = previous_[position + shift];
        for (;; link = previous_[link]) {
            if (link == kNone || link < shift || num_steps-- <= 0) {
                return found;
            }
            const std::uint32_t source = link - shift;
            if (word(link) == last_word && word(source) == first_word) {
                const std::uint32_t longer =
                    common_length(bytes_ + source, here, limit, kHashedLength);
                if (longer > length) {
                    length = longer;
                    break;
                }
            }
        }
        const std::uint32_t offset = position + shift - link;
        if (offset > max_match_offset_) {
            return found;
        }
        const int gain = gain_of(position, length, offset);
        if (gain > found.gain) {
            found = {length, offset, gain};
        }
    }
    return found;
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::best_before(std::uint32_t position,
                                                        std::uint32_t end) const {
    Match found = run_before(position, end);
    const std::uint32_t limit = limit_of(position);
    std::uint32_t length = std::max<std::uint32_t>(kHashedLength - 1, found.length);
    std::uint32_t link = previous_[position];
    for (int passed = 0; link != kNone && link + kHashedLength > end; link = previous_[link]) {
        if (++passed > kMaxPassed) {
            return found;
        }
    }
    for (int num_steps = std::min(2 * chain_length_, kMaxBefore); num_steps > 0 && link != kNone;
         --num_steps, link = previous_[link]) {
        if (position - link > max_match_offset_) {
            break;
        }
        if (link + length >= end || word(link) != word(position)) {
            continue;
        }
        const std::uint32_t longer = common_length(bytes_ + link, bytes_ + position,
                                                   std::min(limit, end - link), kHashedLength);
        if (longer <= length) {
            continue;
        }
        length = longer;
        const int gain = gain_of(position, length, position - link);
        if (gain > found.gain) {
            found = {length, position - link, gain};
        }
        if (length == limit) {
            break;
        }
    }
    return found;
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::run_before(std::uint32_t position,
                                                       std::uint32_t end) const {
    const std::uint32_t nearest = previous_[position];
    if (nearest == kNone) {
        return {};
    }
    const std::uint32_t period = position - nearest;
    const std::uint32_t limit = limit_of(position);
    const std::uint32_t wanted = (position + limit - end + period - 1) / period * period;
    const std::uint32_t most = std::min(position, max_match_offset_) / period * period;
    const std::uint32_t offset = std::min(wanted, most);
    const std::uint32_t source = position - offset;
    if (source + kHashedLength > end || word(source) != word(position)) {
        return {};
    }
    const std::uint32_t length = common_length(bytes_ + source, bytes_ + position,
                                               std::min(limit, end - source), kHashedLength);
    const int gain = gain_of(position, length, offset);
    return gain > 0 ? Match{length, offset, gain} : Match{};
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::best_short(std::uint32_t position) const {
    if (!has_short_) {
        return {};
    }
    const std::uint32_t link = nearest_short_[position];
    if (link == kNone || (word(link) ^ word(position)) << 8 != 0) {
        return {};
    }
    const Match match = match_of(position, kShortLength, position - link);
    return match.gain > kMinShortGain ? match : Match{};
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::nearest(std::uint32_t position, int most) const {
    std::uint32_t link = previous_[position];
    for (int step = 0; step < most && link != kNone; ++step, link = previous_[link]) {
        if (word(link) == word(position)) {
            const std::uint32_t length =
                common_length(bytes_ + link, bytes_ + position, limit_of(position), kHashedLength);
            return {length, position - link, 0};
        }
    }
    return {};
}

template <typename Position, bool kEntropyCoded>
std::uint32_t BestMatches<Position, kEntropyCoded>::nearest_short(std::uint32_t position) const {
    const std::uint32_t link = nearest_short_[position];
    const std::uint32_t difference = link == kNone ? 0 : word(link) ^ word(position);
    return difference != 0 && difference << 8 == 0 ? position - link : 0;
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::repeat(std::uint32_t position,
                                                   std::uint32_t offset) const {
    if (offset == 0 || offset > position || size_ - position < kHashedLength ||
        (word(position) ^ word(position - offset)) << 8 != 0) {
        return {};
    }
    const std::uint32_t length = common_length(bytes_ + position - offset, bytes_ + position,
                                               limit_of(position), kShortLength);
    return {
        length, offset,
        literals_cost(position, length) - match_length_cost<kEntropyCoded>(length) - kRepeatCost};
}

template <typename Position, bool kEntropyCoded>
Match BestMatches<Position, kEntropyCoded>::better(std::uint32_t position,
                                                   const DictionarySearch& dictionary,
                                                   const Match& match) const {
    const std::uint8_t* const here = bytes_ + position;
    const Bytes content = dictionary.content();
    const std::uint32_t limit = limit_of(position);
    Match found = match;
    std::uint32_t length = kHashedLength - 1;
    dictionary.for_each(here, [&](std::uint32_t address) {
        const std::uint8_t* const source = content.data() + address;
        const std::uint32_t longest =
            std::min(limit, static_cast<std::uint32_t>(content.size()) - address);
        if (length >= longest || source[length] != here[length]) {
            return;
        }
        const std::uint32_t longer = common_length(source, here, longest);
        if (longer <= length) {
            return;
        }
        length = longer;
        const int cost = match_length_cost<kEntropyCoded>(length) + address_cost(address);
        const int gain = literals_cost(position, length) - cost;
        if (gain > found.gain) {
            found = {length, address | kFromDictionary, gain};
        }
    });
    return found;
}

}  // namespace gompfs

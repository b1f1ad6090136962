// A parser that finds the cheapest sequences of gompresso-byte, where a sequence costs the same
// whatever its bytes are.
//
// Matches
//
// As all match offsets cost the same, only the longest match of each position counts. At the next
// position it goes on, one byte shorter. A match that is longer, at this position or at a later
// one, must contain the four bytes that end one byte after the known match. So the chain of these
// bytes (position_links.h) has all candidates. How many bytes before are equal as well says from
// which position on a candidate is longer, and the positions up to the first such one are not
// searched at all. Neither are those inside a match of at least nice_length bytes.
//
// Costs
//
// Dynamic programming backwards over positions: the cost of a position is that of the cheapest
// sequences from there to the end of the block. It is the cost of the next position and a literal,
// or of the end of a match and a sequence. A literal string that is long enough to need an
// extension costs another byte; so the length of the literal string that begins at a position is
// kept with the cost. Of a match, the longest two lengths are tried, and the longest without an
// extension: trying more gains nothing, as the next match can usually begin where the longest ends.
#include "codec/backward_parser.h"

#include <algorithm>
#include <memory>

#include "codec/match_length.h"
#include "codec/position_links.h"
#include "common/cancellation.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// Costs are in 1/16 byte. A sequence takes a token and an offset (3 bytes), and is charged slightly
// more because fewer sequences decode faster.
constexpr std::uint32_t kByteCost = 16;
constexpr std::uint32_t kSequenceCost = 3 * kByteCost + 1;

// A match of this length needs an extension.
constexpr std::uint32_t kExtendedMatchLength = kByteMatchEscape + kByteMinMatchLength - 1;

// The cheapest way from a position to the end of the block, as one number, so that the smallest
// number is the cheapest way: the cost, the length of a match that begins at the position (0 for a
// literal), and the number of literals in a row that begin there.
using Way = std::uint64_t;

constexpr Way make_way(std::uint32_t cost, std::uint32_t match_length, std::uint32_t num_literals) {
    return Way{cost} << 32 | Way{match_length} << 16 | num_literals;
}
constexpr std::uint32_t cost_of(Way way) { return static_cast<std::uint32_t>(way >> 32); }
constexpr std::uint32_t match_length_of(Way way) { return way >> 16 & 0xffff; }

// The way that begins with a literal and goes on as another one.
constexpr Way way_with_literal(Way after) {
    const Way num_literals = after & 0xffff;
    Way way = (after & ~make_way(0, 0xffff, 0)) + make_way(kByteCost, 0, 1);
    if (num_literals == kByteMaxLiteralLength) {
        way += make_way(kSequenceCost, 0, 0) - kByteMaxLiteralLength;
    } else if (num_literals + 1 == kByteLiteralEscape) {
        way += make_way(kByteCost, 0, 0);
    }
    return way;
}

template <typename Position>
class BackwardParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    struct Match {
        std::uint16_t length = 0;
        std::uint16_t offset = 0;
    };
    static_assert(kByteMaxMatchOffset < 1 << 16 && kByteMaxMatchLength < 1 << 16);

    static constexpr Position kNone = kNoLink<Position>;

    std::uint32_t word(std::uint32_t position) const {
        return load<std::uint32_t>(bytes_ + position);
    }
    void find_matches(const SearchEffort& effort);
    static constexpr std::uint32_t kDiffers = ~0u;
    std::uint32_t equal_before(std::uint32_t source, std::uint32_t end, std::uint32_t most) const;
    void search(std::uint32_t position, const SearchEffort& effort);
    void find_ways();
    Way way_with_match(std::uint32_t position, std::uint32_t length, std::uint32_t cost) const;
    void follow(std::vector<Sequence>& sequences) const;

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    PositionLinks<Position> previous_;
    Match match_;                    // the longest of the current position
    std::uint32_t search_from_ = 0;  // no position before it can have a longer match
    std::vector<Match> matches_;     // the longest of each position
    std::vector<Way> ways_;          // one per position, and one for the end
};

// The number of equal bytes before two positions, at most `most`; kDiffers if the four bytes from
// there on are not the same.
template <typename Position>
std::uint32_t BackwardParser<Position>::equal_before(std::uint32_t source, std::uint32_t end,
                                                     std::uint32_t most) const {
    if (source < kHashedLength) {
        return word(source) == word(end)
                   ? common_suffix(bytes_ + source, bytes_ + end, std::min(most, source))
                   : kDiffers;
    }
    // Four bytes before and four bytes from there on, in one comparison.
    const std::uint64_t difference = load<std::uint64_t>(bytes_ + source - kHashedLength) ^
                                     load<std::uint64_t>(bytes_ + end - kHashedLength);
    if (difference >> 32 != 0) {
        return kDiffers;
    }
    if (difference != 0 || most <= kHashedLength) {
        return std::min(most, static_cast<std::uint32_t>(
                                  std::countl_zero(static_cast<std::uint32_t>(difference)) >> 3));
    }
    return common_suffix(bytes_ + source, bytes_ + end, std::min(most, source), kHashedLength);
}

// Makes match_ the longest match at a position, which is at least what is left of the match before.
template <typename Position>
void BackwardParser<Position>::search(std::uint32_t position, const SearchEffort& effort) {
    const std::uint32_t limit = std::min<std::uint32_t>(size_ - position, kByteMaxMatchLength);
    const std::uint32_t nice_length =
        std::min(limit, static_cast<std::uint32_t>(effort.nice_length));
    std::uint32_t length = std::max<std::uint32_t>(match_.length, kHashedLength - 1);
    int num_steps = effort.chain_length;
    bool is_longer = true;
    while (is_longer && length < nice_length) {
        // A longer match contains the four bytes at `end`.
        const std::uint32_t end = position + length - (kHashedLength - 1);
        const std::uint32_t most_before = end - position;
        is_longer = false;
        search_from_ = std::max(end, position + 1);
        for (std::uint32_t link = previous_[end]; link != kNone && num_steps-- > 0;
             link = previous_[link]) {
            if (end - link > kByteMaxMatchOffset) {
                break;
            }
            const std::uint32_t before = equal_before(link, end, most_before);
            if (before == kDiffers) {
                continue;
            }
            if (before == most_before) {
                length = common_length(bytes_ + link - before, bytes_ + position, limit,
                                       most_before + kHashedLength);
                match_ = {static_cast<std::uint16_t>(length),
                          static_cast<std::uint16_t>(end - link)};
                is_longer = true;
                break;
            }
            search_from_ = std::min(search_from_, end - before);
        }
    }
    if (length >= nice_length) {
        search_from_ = position + length;
    }
}

template <typename Position>
void BackwardParser<Position>::find_matches(const SearchEffort& effort) {
    const std::uint32_t num_searchable = size_ - std::min<std::uint32_t>(size_, kHashedLength - 1);
    matches_.resize(size_);
    match_ = {};
    CancellationPoint point;
    for (std::uint32_t position = 0; position < size_;) {
        point();
        search_from_ = size_;
        if (position < num_searchable) {
            search(position, effort);
        }
        std::uint16_t length = match_.length;
        for (const std::uint32_t end = std::min(search_from_, size_); position < end; ++position) {
            matches_[position] = {length, match_.offset};
            length = static_cast<std::uint16_t>(length - (length != 0));
        }
        match_.length = length;
    }
}

// The cheapest way that begins with a match of `length` bytes, or of one byte less.
template <typename Position>
Way BackwardParser<Position>::way_with_match(std::uint32_t position, std::uint32_t length,
                                             std::uint32_t cost) const {
    const Way longest = make_way(cost + cost_of(ways_[position + length]), length, 0);
    const Way shorter = make_way(cost + cost_of(ways_[position + length - 1]), length - 1, 0);
    return length > kByteMinMatchLength ? std::min(longest, shorter) : longest;
}

template <typename Position>
void BackwardParser<Position>::find_ways() {
    ways_.resize(size_ + 1);
    ways_[size_] = 0;
    Way after = make_way(kSequenceCost, 0, 0);  // literals at the end need a sequence, too
    for (std::uint32_t position = size_; position-- > 0;) {
        Way best = way_with_literal(after);
        const std::uint32_t length = matches_[position].length;
        if (length >= kByteMinMatchLength) {
            const std::uint32_t plain = std::min(length, kExtendedMatchLength - 1);
            best = std::min(best, way_with_match(position, plain, kSequenceCost));
            if (length > plain) {
                best = std::min(best, way_with_match(position, length, kSequenceCost + kByteCost));
            }
        }
        ways_[position] = after = best;
    }
}

// Appends the sequences of the cheapest way.
template <typename Position>
void BackwardParser<Position>::follow(std::vector<Sequence>& sequences) const {
    std::uint32_t anchor = 0;
    const auto push = [&](std::uint32_t end, std::uint32_t match_length, std::uint32_t offset) {
        for (; end - anchor > kByteMaxLiteralLength; anchor += kByteMaxLiteralLength) {
            sequences.push_back({kByteMaxLiteralLength, 0, 0});
        }
        sequences.push_back({end - anchor, match_length, offset});
        anchor = end + match_length;
    };
    for (std::uint32_t position = 0; position < size_;) {
        const std::uint32_t length = match_length_of(ways_[position]);
        if (length == 0) {
            ++position;
            continue;
        }
        push(position, length, matches_[position].offset);
        position += length;
    }
    if (anchor < size_) {
        push(size_, 0, 0);
    }
}

template <typename Position>
void BackwardParser<Position>::parse(Bytes content, const ParserLimits&, const SearchEffort& effort,
                                     std::vector<Sequence>& sequences) {
    constexpr int kHashBits = 16;
    bytes_ = content.data();
    size_ = static_cast<std::uint32_t>(content.size());
    link_four_bytes<kHashBits>(content, previous_);
    find_matches(effort);
    find_ways();
    sequences.clear();
    follow(sequences);
}

template <typename Position>
void parse_positions(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                     std::vector<Sequence>& sequences) {
    thread_local const auto parser = std::make_unique<BackwardParser<Position>>();
    parser->parse(content, limits, effort, sequences);
}

}  // namespace

void parse_block_backwards(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences) {
    const auto parse = content.size() > kMaxNarrowBlock ? parse_positions<std::uint32_t>
                                                        : parse_positions<std::uint16_t>;
    parse(content, limits, effort, sequences);
}

}  // namespace gompfs

// A parser that finds the cheapest sequences of gompresso-byte, where a sequence costs the same
// whatever its bytes are.
//
// Matches
//
// As all match offsets cost the same, only the longest match of each position counts. At the next
// position the known match goes on, one byte shorter. A longer match, at this position or at a
// later one, either contains the five bytes that end one byte after the known match, or begins with
// the last four of these bytes. Candidates of the first kind are all in the chain of the five bytes
// (position_links.h). For each candidate, the number of equal bytes before and including the five
// tells at which position its match begins. The candidate with most equal bytes gives the next
// longest match; no position before that one can have a longer match, so none is searched. Without
// such a candidate, the search begins anew with the last four bytes: it finds a match of four
// bytes, then longer ones as above. Positions inside a match of at least nice_length bytes are not
// searched either.
//
// The search for four bytes only knows positions where no match was known: the bytes of all others
// are also at the source of a match. Blocks that are larger than the longest offset need all
// positions, because that source may be too far away later.
//
// Costs
//
// Dynamic programming backwards over positions: the cost of a position is that of the cheapest
// sequences from there to the end of the block. It is the cost of the next position and a literal,
// or of the end of a match and a sequence. A literal string that is long enough to need an
// extension costs another byte; so the length of the literal string that begins at a position is
// kept with the cost. Of a match, the longest two lengths are tried, and the longest two without an
// extension: trying more gains nothing, as the next match can usually begin where the longest ends.
#include "codec/parse/backward_parser.h"

#include <algorithm>
#include <memory>

#include "codec/parse/match_length.h"
#include "codec/parse/position_links.h"
#include "common/cancellation.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// Costs are in 1/16 byte. A sequence takes a token and an offset (3 bytes), and is charged slightly
// more because fewer sequences decode faster.
constexpr std::uint32_t kByteCost = 16;
constexpr std::uint32_t kSequenceCost = 3 * kByteCost + 1;

// The longest match without an extension.
constexpr std::uint32_t kLongestPlain = kByteMatchEscape + kByteMinMatchLength - 2;

// Sequences from a position on: what they cost, and how many literals they begin with.
struct Way {
    std::uint32_t cost;
    std::uint32_t num_literals;

    // The way that begins with another literal.
    Way with_literal() const {
        if (num_literals == kByteMaxLiteralLength) {
            return {cost + kByteCost + kSequenceCost, 1};
        }
        const bool is_extended = num_literals + 1 == kByteLiteralEscape;
        return {cost + (is_extended ? 2 * kByteCost : kByteCost), num_literals + 1};
    }
};

// The cost of a match that ends at a position, and of the way from there.
struct End {
    std::uint32_t cost;
    std::uint32_t position;
};

// The shorter match is better if both cost the same.
constexpr End cheaper(const End& shorter, const End& longer) {
    return longer.cost < shorter.cost ? longer : shorter;
}

// A value for each position. Positions are set from the last one to the first.
template <typename Value>
class BackwardArray {
  public:
    // The old values are lost.
    void resize(std::size_t size) { values_.resize(kPadding + size); }
    Value& operator[](std::size_t position) { return values_[kPadding + position]; }
    Value operator[](std::size_t position) const { return values_[kPadding + position]; }

    // Sets the positions from `end` back to `begin`. To be fast, also some that will be set later.
    void fill(std::size_t begin, std::size_t end, Value value) {
        Value* next = &values_[kPadding + end];
        const Value* const last = &values_[kPadding + begin];
        while (next > last) {
            next -= kPadding;
            std::fill_n(next, kPadding, value);
        }
    }

  private:
    static constexpr std::size_t kPadding = 8;
    std::vector<Value> values_;
};

template <typename Position>
class BackwardParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    // From `begin` up to the next stretch, the longest match of each position ends at `end`.
    struct Stretch {
        std::uint32_t begin;
        std::uint32_t end;
        std::uint32_t offset;
    };
    // The last of `num_equal` bytes that occurred before are at `link` and the three positions
    // after it. num_equal is 0 if there are not even five.
    struct Candidate {
        std::uint32_t num_equal = 0;
        std::uint32_t link = 0;
    };

    static constexpr std::uint32_t kNone = kNoLink<Position>;
    static constexpr int kHashBits = 16;
    static constexpr bool kIsLarge = sizeof(Position) > 2;  // larger than the longest offset

    std::uint32_t word(std::uint32_t position) const {
        return load<std::uint32_t>(bytes_ + position);
    }
    static bool is_too_far(std::uint32_t offset) {
        return kIsLarge && offset > kByteMaxMatchOffset;
    }
    void find_matches(const SearchEffort& effort);
    void link_with_four(std::uint32_t end);
    void leave_match(std::uint32_t position);
    std::uint32_t nearest(std::uint32_t position, int most) const;
    Candidate best_candidate(std::uint32_t end, std::uint32_t wanted, int most) const;
    void find_ways();
    Way begin_with_literals(std::uint32_t begin, std::uint32_t end, Way way);
    Way begin_with_plain(std::uint32_t match_end, std::uint32_t begin, std::uint32_t end, Way way);
    Way begin_with_extended(std::uint32_t match_end, std::uint32_t begin, std::uint32_t end,
                            Way way);
    void set_way(std::uint32_t position, std::uint32_t cost, std::uint32_t match_end) {
        costs_[position] = cost;
        match_ends_[position] = static_cast<std::uint16_t>(match_end);
    }
    End end_at(std::uint32_t position) const {
        return {costs_[position] + kSequenceCost, position};
    }
    void follow(std::vector<Sequence>& sequences) const;

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint32_t next_with_four_ = 0;  // the next position that with_four_ gets
    PositionLinks<Position> with_four_;
    PositionLinks<Position> with_five_;  // those of the position and the byte before
    std::vector<Stretch> stretches_;
    // Of the cheapest way from each position: its cost, and the lower bits of where the match ends
    // with which it begins, or of the position itself if it begins with a literal. costs_ has the
    // end of the block, too.
    BackwardArray<std::uint32_t> costs_;
    BackwardArray<std::uint16_t> match_ends_;
    static_assert(kByteMaxMatchLength < 1 << 16);
};

// Links the next positions with the same four bytes, up to `end`.
template <typename Position>
void BackwardParser<Position>::link_with_four(std::uint32_t end) {
    for (; next_with_four_ < end; ++next_with_four_) {
        with_four_.add(next_with_four_, hash4<kHashBits>(bytes_ + next_with_four_));
    }
}

// Leaves out positions before `position` that lie in a match.
template <typename Position>
void BackwardParser<Position>::leave_match(std::uint32_t position) {
    if constexpr (!kIsLarge) {
        next_with_four_ = std::max(next_with_four_, position);
    }
}

// Returns the nearest of the linked positions with the same four bytes, or kNone.
template <typename Position>
std::uint32_t BackwardParser<Position>::nearest(std::uint32_t position, int most) const {
    const std::uint32_t wanted = word(position);
    std::uint32_t link = with_four_.last(hash4<kHashBits>(bytes_ + position));
    for (; link != kNone && !is_too_far(position - link); link = with_four_[link]) {
        if (word(link) == wanted) {
            return link;
        }
        if (--most == 0) {
            break;
        }
    }
    return kNone;
}

// Returns the nearest of the candidates with most of the bytes before end + 4, or the first with
// `wanted` of them. Looks at up to `most` candidates.
template <typename Position>
typename BackwardParser<Position>::Candidate BackwardParser<Position>::best_candidate(
    std::uint32_t end, std::uint32_t wanted, int most) const {
    const auto last_eight = [bytes = bytes_ - kHashedLength](std::uint32_t position) {
        return load<std::uint64_t>(bytes + position);
    };
    const std::uint64_t here = last_eight(end);
    // The last of the eight bytes is the highest of the number. So a candidate has more equal bytes
    // at its end than the best one so far only if its difference is below this limit.
    std::uint64_t too_different = std::uint64_t{1} << 24;
    Candidate best;
    for (std::uint32_t link = with_five_[end]; link != kNone && most-- > 0;
         link = with_five_[link]) {
        if (is_too_far(end - link)) {
            break;
        }
        const std::uint64_t difference = last_eight(link) ^ here;
        if (difference >= too_different) {
            continue;
        }
        const auto num_equal = std::min(
            wanted, difference != 0
                        ? static_cast<std::uint32_t>(std::countl_zero(difference) >> 3)
                        : common_suffix(bytes_ + link + kHashedLength, bytes_ + end + kHashedLength,
                                        std::min(wanted, link + kHashedLength), 8));
        if (num_equal > best.num_equal) {
            best = {num_equal, link};
            if (num_equal == wanted) {
                break;
            }
            too_different = std::uint64_t{1} << (56 - 8 * std::min(num_equal, 7u));
        }
    }
    return best;
}

// Not inlined, because its loop needs the registers.
template <typename Position>
[[gnu::noinline]] void BackwardParser<Position>::find_matches(const SearchEffort& effort) {
    const std::uint32_t num_searchable = size_ - std::min<std::uint32_t>(size_, kHashedLength - 1);
    stretches_.clear();
    CancellationPoint point;
    std::uint32_t length = 0;  // of the longest match at the position; 0 if none is known
    for (std::uint32_t position = 0; position < num_searchable;) {
        point();
        Stretch found{position, 0, 0};
        std::uint32_t num_known = kHashedLength;
        if (length == 0) {
            link_with_four(position);
            const std::uint32_t source = nearest(position, effort.backward_chain_length);
            link_with_four(position + 1);
            if (source == kNone) {
                ++position;
                continue;
            }
            found.offset = position - source;
        } else {
            const std::uint32_t end = position + length - (kHashedLength - 1);
            const Candidate best = best_candidate(end, length + 1, effort.backward_chain_length);
            if (best.num_equal == 0) {
                position = end;
                length = 0;
                leave_match(end);
                continue;
            }
            num_known = best.num_equal;
            found = {end + kHashedLength - num_known, 0, end - best.link};
        }
        const std::uint32_t limit =
            std::min<std::uint32_t>(size_ - found.begin, kByteMaxMatchLength);
        const std::uint8_t* const here = bytes_ + found.begin;
        const bool is_longer = length != 0 && found.begin == position;
        length = common_length(here - found.offset, here, limit, num_known);
        found.end = found.begin + length;
        if (!is_longer) {
            stretches_.emplace_back();
        }
        stretches_.back() = found;
        position = found.begin;
        if (length >= std::min(limit, static_cast<std::uint32_t>(effort.backward_nice_length))) {
            position = found.end;
            length = 0;
            leave_match(position - (kHashedLength - 1));
        }
    }
}

// Begins the ways from the positions from `end` back to `begin` with literals. `way` is that from
// `end`, and becomes that from `begin`, here and below.
template <typename Position>
Way BackwardParser<Position>::begin_with_literals(std::uint32_t begin, std::uint32_t end, Way way) {
    for (std::uint32_t position = end; position-- > begin;) {
        way = way.with_literal();
        set_way(position, way.cost, position);
    }
    return way;
}

// Likewise where there is a match without an extension. If it is better than a literal at one
// position, it also is at those before.
template <typename Position>
Way BackwardParser<Position>::begin_with_plain(std::uint32_t match_end, std::uint32_t begin,
                                               std::uint32_t end, Way way) {
    const End longest = end_at(match_end), either = cheaper(end_at(match_end - 1), longest);
    for (std::uint32_t position = end; position-- > begin;) {
        const End& match = match_end - position == kByteMinMatchLength ? longest : either;
        way = way.with_literal();
        if (way.cost <= match.cost) {
            set_way(position, way.cost, position);
            continue;
        }
        set_way(position, match.cost, match.position);
        costs_.fill(begin, position, either.cost);
        match_ends_.fill(begin, position, static_cast<std::uint16_t>(either.position));
        return {begin == position ? match.cost : either.cost, 0};
    }
    return way;
}

// Likewise where the match needs an extension. If it is better than a literal at one position, it
// also is at those before.
template <typename Position>
Way BackwardParser<Position>::begin_with_extended(std::uint32_t match_end, std::uint32_t begin,
                                                  std::uint32_t end, Way way) {
    End extended = cheaper(end_at(match_end - 1), end_at(match_end));
    extended.cost += kByteCost;
    for (std::uint32_t position = end; position-- > begin;) {
        const std::uint32_t plain = position + kLongestPlain;
        const bool is_best = way.num_literals == 0 && way.cost == extended.cost;
        if (is_best &&
            plain < end) {  // a match that ends here would be followed by an extended one
            costs_.fill(begin, position + 1, extended.cost);
            match_ends_.fill(begin, position + 1, static_cast<std::uint16_t>(extended.position));
            break;
        }
        const End match = cheaper(cheaper(end_at(plain - 1), end_at(plain)), extended);
        way = way.with_literal();
        if (way.cost <= match.cost) {
            set_way(position, way.cost, position);
        } else {
            set_way(position, match.cost, match.position);
            way = {match.cost, 0};
        }
    }
    return way;
}

template <typename Position>
void BackwardParser<Position>::find_ways() {
    costs_.resize(size_ + 1);
    match_ends_.resize(size_);
    costs_[size_] = 0;
    Way way{kSequenceCost, 0};  // literals at the end need a sequence, too
    std::uint32_t end = size_;
    for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend(); ++stretch) {
        const std::uint32_t begin = stretch->begin;
        const std::uint32_t plain_end = std::min(end, stretch->end - (kByteMinMatchLength - 1));
        const std::uint32_t plain_begin =
            std::clamp(stretch->end - std::min(stretch->end, kLongestPlain), begin, plain_end);
        way = begin_with_literals(plain_end, end, way);
        way = begin_with_plain(stretch->end, plain_begin, plain_end, way);
        way = begin_with_extended(stretch->end, begin, plain_begin, way);
        end = begin;
    }
    way = begin_with_literals(0, end, way);
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
    std::size_t next_stretch = 0;
    for (std::uint32_t position = 0; position < size_;) {
        const auto length = static_cast<std::uint16_t>(match_ends_[position] - position);
        if (length == 0) {
            ++position;
            continue;
        }
        while (next_stretch < stretches_.size() && stretches_[next_stretch].begin <= position) {
            ++next_stretch;
        }
        push(position, length, stretches_[next_stretch - 1].offset);
        position += length;
    }
    if (anchor < size_) {
        push(size_, 0, 0);
    }
}

template <typename Position>
void BackwardParser<Position>::parse(Bytes content, const ParserLimits&, const SearchEffort& effort,
                                     std::vector<Sequence>& sequences) {
    bytes_ = content.data();
    size_ = static_cast<std::uint32_t>(content.size());
    next_with_four_ = 0;
    with_four_.start(content.size(), std::size_t{1} << kHashBits);
    link_five_bytes<kHashBits>(content, with_five_);
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

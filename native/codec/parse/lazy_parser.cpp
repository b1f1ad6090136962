// A lazy parser: it walks over the best matches of the positions of a block.
//
// Walk
//
// The best match at a position is a function of the block alone (best_match.h). At each position
// the parser compares it with the match that repeats the last offset, if entropy coding makes that
// cheap. It takes the better one, unless one of the next positions has a match that gains more
// (lazy evaluation). That one is then taken, unless one of the positions after it has a better one
// again. A position without a match becomes a literal.
//
// At some levels a later match must also end later (SearchEffort::later_ends_later): others seldom
// gain enough. At level 6 that costs at most 0.08% of space on six corpora, and a GPU walks 1.1
// times as fast; at other levels it costs more. Not with dependency elimination or strict groups,
// where a GPU finds all matches before the walk.
//
// Dependency elimination
//
// The walk shortens a match whose source is not legal for the open group. It then also considers
// the best match whose source lies before the first match of the group. Under the usual rule, a
// source lies below the high-water mark, where the group began, or consists of literals of the
// group. Under the strict rule, which is the Gompresso paper's, it lies below the high-water mark;
// the codecs allow both.
//
// Dictionary
//
// A match from a dictionary is legal everywhere. It is searched where the block has no long match,
// but not where only a deferral is considered: that would gain 0.1%, and double the time that the
// dictionary costs.
#include "codec/parse/lazy_parser.h"

#include <algorithm>
#include <memory>

#include "codec/parse/best_match.h"
#include "codec/parse/bit_fields.h"
#include "common/cancellation.h"
#include "shared/match_costs.h"

namespace gompfs {
namespace {

// The dictionary is not searched if the block has a match of this length.
constexpr std::uint32_t kLongWithoutDictionary = 16;
// Literals of a sequence without a match in the first group, under the strict rule.
constexpr std::uint32_t kFirstStrictLiterals = 8;

template <typename Position, bool kEntropyCoded, bool kHasRule>
class LazyParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    void start(Bytes content);
    Match better_repeat(std::uint32_t position, const Match& match) const;
    Match find_without_dictionary(std::uint32_t position) const;
    Match find_long(std::uint32_t position) const;
    Match find(std::uint32_t position) const;
    Match find_later(std::uint32_t position, std::uint32_t end) const;
    bool defer(std::uint32_t& position, Match& match) const;
    Match legal(std::uint32_t position, const Match& match) const;
    Match legal_or_before(std::uint32_t position, const Match& match) const;
    std::uint32_t legal_length(std::uint32_t position, const Match& match) const;
    void end_long_literals(std::uint32_t position, std::vector<Sequence>& sequences);
    void emit(std::uint32_t position, const Match& match, std::vector<Sequence>& sequences);
    void push(const Sequence& sequence, std::vector<Sequence>& sequences);

    BestMatches<Position, kEntropyCoded> matches_;
    ParserLimits limits_{};
    SearchEffort effort_{};
    std::uint32_t size_ = 0;
    std::uint32_t num_searchable_ = 0;   // positions that are followed by enough bytes for a hash
    std::uint32_t anchor_ = 0;           // start of the literals that belong to no sequence yet
    std::uint32_t high_water_mark_ = 0;  // output below it is final for the open group
    std::uint32_t first_match_ = 0;      // start of the open group's first match, or size_
    std::uint32_t last_offset_ = 0;      // of the latest match; 0 if there is none yet
    // With dependency elimination, per position: whether it is a literal of a sequence.
    std::vector<std::uint8_t> literal_;
};

template <typename Position, bool kEntropyCoded, bool kHasRule>
void LazyParser<Position, kEntropyCoded, kHasRule>::start(Bytes content) {
    size_ = static_cast<std::uint32_t>(content.size());
    num_searchable_ = size_ - std::min(size_, kHashedLength - 1);
    anchor_ = high_water_mark_ = last_offset_ = 0;
    first_match_ = size_;
    matches_.start(content, limits_, effort_);
    if (kHasRule) {
        literal_.assign(size_, 0);
    }
}

// The length that a match at `position` may have under the rule. Bytes from anchor_ on will be
// literals of the group if the match is taken.
template <typename Position, bool kEntropyCoded, bool kHasRule>
std::uint32_t LazyParser<Position, kEntropyCoded, kHasRule>::legal_length(
    std::uint32_t position, const Match& match) const {
    const std::uint32_t source = position - match.offset;
    if (source + match.length <= high_water_mark_) {
        return match.length;
    }
    std::uint32_t end = std::max(source, high_water_mark_);
    const std::uint32_t source_end = std::min(source + match.length, position);
    while (!limits_.strict_sources && end < source_end && (end >= anchor_ || literal_[end])) {
        ++end;
    }
    return end - source;
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::legal(std::uint32_t position,
                                                           const Match& match) const {
    if (!kHasRule) {
        return match;
    }
    const std::uint32_t length = legal_length(position, match);
    if (length == match.length) {
        return match;
    }
    return length < limits_.min_match_length ? Match{}
                                             : matches_.match_of(position, length, match.offset);
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::legal_or_before(std::uint32_t position,
                                                                     const Match& match) const {
    if (!kHasRule || match.length == 0) {
        return match;
    }
    const Match near = legal(position, match);
    if (near.length == match.length) {
        return near;
    }
    const std::uint32_t end =
        limits_.strict_sources ? high_water_mark_ : std::min(first_match_, position);
    const Match before = matches_.best_before(position, end);
    return before.gain > near.gain ? before : near;
}

// The match that repeats the last offset, if it is better.
template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::better_repeat(std::uint32_t position,
                                                                   const Match& match) const {
    if constexpr (kEntropyCoded) {
        const Match repeat = legal(position, matches_.repeat(position, last_offset_));
        return repeat.gain > match.gain ? repeat : match;
    }
    return match;
}

// The best match in the block of at least four bytes, or the one that repeats the last offset.
template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::find_without_dictionary(
    std::uint32_t position) const {
    return better_repeat(position, legal_or_before(position, matches_.best(position)));
}

// Likewise, in the block or in the dictionary.
template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::find_long(std::uint32_t position) const {
    if constexpr (kEntropyCoded) {
        if (limits_.dictionary != nullptr && size_ - position >= DictionarySearch::kReadLength) {
            const DictionarySearch& dictionary = *limits_.dictionary;
            matches_.prefetch(position, dictionary);
            const Match match = legal_or_before(position, matches_.best(position));
            return better_repeat(position, match.length < kLongWithoutDictionary
                                               ? matches_.better(position, dictionary, match)
                                               : match);
        }
    }
    return find_without_dictionary(position);
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::find(std::uint32_t position) const {
    const Match match = find_long(position);
    return match.length != 0 ? match : legal(position, matches_.best_short(position));
}

// Finds the match at a position that is considered in place of a match that ends at `end`.
template <typename Position, bool kEntropyCoded, bool kHasRule>
Match LazyParser<Position, kEntropyCoded, kHasRule>::find_later(std::uint32_t position,
                                                                std::uint32_t end) const {
    if (kHasRule || limits_.strict_sources || !effort_.later_ends_later) {
        return find_without_dictionary(position);
    }
    return better_repeat(position, matches_.best_longer(position, end - position));
}

// Looks for a better match at the next positions. If there is one, goes on to it and returns true.
template <typename Position, bool kEntropyCoded, bool kHasRule>
bool LazyParser<Position, kEntropyCoded, kHasRule>::defer(std::uint32_t& position,
                                                          Match& match) const {
    if (match.length >= static_cast<std::uint32_t>(effort_.nice_length)) {
        return false;
    }
    const std::uint32_t end = position + match.length;
    for (std::uint32_t step = 1; step <= effort_.lazy_steps && position + step < num_searchable_;
         ++step) {
        const Match next = find_later(position + step, end);
        if (next.gain > match.gain + kLazyBias * static_cast<int>(step)) {
            position += step;
            match = next;
            return true;
        }
    }
    return false;
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
void LazyParser<Position, kEntropyCoded, kHasRule>::push(const Sequence& sequence,
                                                         std::vector<Sequence>& sequences) {
    sequences.push_back(sequence);
    if (sequence.match_length != 0) {
        last_offset_ = last_offset_after(last_offset_, sequence.match_offset);
        first_match_ = std::min(first_match_, anchor_ - sequence.match_length);
    }
    if (sequences.size() % (std::size_t{1} << limits_.group_size_log2) == 0) {
        high_water_mark_ = anchor_;
        first_match_ = size_;
    }
}

// Under the strict rule, a group must end before anything can be copied from it, also if it finds
// no match. So literals become sequences as they come, and short ones in the first group.
template <typename Position, bool kEntropyCoded, bool kHasRule>
void LazyParser<Position, kEntropyCoded, kHasRule>::end_long_literals(
    std::uint32_t position, std::vector<Sequence>& sequences) {
    while (limits_.strict_sources) {
        const std::uint32_t most =
            high_water_mark_ == 0 ? kFirstStrictLiterals : limits_.max_literal_length;
        if (position - anchor_ < most) {
            return;
        }
        anchor_ += most;
        push({most, 0, 0}, sequences);
    }
}

// Emits the literals from anchor_ to `position`, then the match. A literal string too long for one
// sequence takes several.
template <typename Position, bool kEntropyCoded, bool kHasRule>
void LazyParser<Position, kEntropyCoded, kHasRule>::emit(std::uint32_t position, const Match& match,
                                                         std::vector<Sequence>& sequences) {
    if (kHasRule) {
        std::fill(literal_.begin() + anchor_, literal_.begin() + position, std::uint8_t{1});
    }
    while (position - anchor_ > limits_.max_literal_length) {
        anchor_ += limits_.max_literal_length;
        push({limits_.max_literal_length, 0, 0}, sequences);
    }
    const std::uint32_t literal_length = position - anchor_;
    anchor_ = position + match.length;
    push({literal_length, match.length, match.offset}, sequences);
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
void LazyParser<Position, kEntropyCoded, kHasRule>::parse(Bytes content, const ParserLimits& limits,
                                                          const SearchEffort& effort,
                                                          std::vector<Sequence>& sequences) {
    limits_ = limits;
    effort_ = effort;
    sequences.clear();
    start(content);
    const unsigned misses_to_skip_log2 = effort.skips ? kMissesToSkipLog2 : kMissesToSkipSlowlyLog2;
    std::uint32_t num_misses = 0;  // number of searches in a row without a match
    CancellationPoint point;
    for (std::uint32_t position = 0; position < num_searchable_;) {
        point();
        Match match = find(position);
        if (match.length == 0) {
            position = std::min(position + 1 + (++num_misses >> misses_to_skip_log2), size_);
            end_long_literals(position, sequences);
            continue;
        }
        num_misses = 0;
        while (defer(position, match)) {
        }
        emit(position, match, sequences);
        position = anchor_;
    }
    if (anchor_ < size_) {
        emit(size_, {}, sequences);
    }
}

template <typename Position, bool kEntropyCoded, bool kHasRule>
void parse_with(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                std::vector<Sequence>& sequences) {
    // A pointer: in a shared library each access to a thread_local object is a function call.
    thread_local const auto parser =
        std::make_unique<LazyParser<Position, kEntropyCoded, kHasRule>>();
    parser->parse(content, limits, effort, sequences);
}

template <typename Position>
void parse_positions(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                     std::vector<Sequence>& sequences) {
    const auto parse = limits.entropy_coded
                           ? (limits.dependency_elimination ? parse_with<Position, true, true>
                                                            : parse_with<Position, true, false>)
                           : (limits.dependency_elimination ? parse_with<Position, false, true>
                                                            : parse_with<Position, false, false>);
    parse(content, limits, effort, sequences);
}

}  // namespace

void parse_block_lazily(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                        std::vector<Sequence>& sequences) {
    const auto parse = content.size() > kMaxNarrowBlock ? parse_positions<std::uint32_t>
                                                        : parse_positions<std::uint16_t>;
    parse(content, limits, effort, sequences);
}

}  // namespace gompfs

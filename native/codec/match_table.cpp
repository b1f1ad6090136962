// Fills the table of matches; see match_table.h.
//
// Matches of 4 bytes and more come from MatchFinder, matches of exactly 3 bytes from hash chains of
// this file's own. Two shortcuts keep the time bounded on repetitive content: inside a match of at
// least nice_length bytes nothing is searched, and after the start of a match of at least 24 bytes
// only matches longer than its rest are searched. A dictionary is searched at all positions, which
// takes the same time everywhere.
#include "codec/match_table.h"

#include <algorithm>

#include "codec/dictionary_search.h"
#include "codec/match_length.h"
#include "common/cancellation.h"
#include "shared/dictionary_addresses.h"

namespace gompfs {
namespace {

// Output farther back than this rarely belongs to the open group. A match that ends there is
// therefore assumed to be legal, and matches that are farther away and not longer are left out.
// Where matches are long, groups are long too, so a match only counts as legal if three times its
// length fits between its start and that distance (kFinalLengths).
constexpr std::uint32_t kUsualGroupLength = 64;
constexpr std::uint32_t kFinalLengths = 3;

// After a match of this length begins, only matches longer than its rest are searched.
constexpr std::uint32_t kContinuedLength = 24;

}  // namespace

void MatchTable::fill(Bytes content, const ParserLimits& limits, const SearchEffort& effort) {
    content_ = content;
    find_all(limits, effort);
    from_dictionary_.clear();
    first_from_dictionary_.clear();
    if (limits.dictionary != nullptr) {
        search_dictionary(limits);
    }
}

void MatchTable::find_all(const ParserLimits& limits, const SearchEffort& effort) {
    finder_.start(content_, limits, effort, kFinalLengths);
    link_three_bytes<kShortHashBits>(content_, previous_);
    matches_.clear();
    first_.clear();
    longest_ = {0, 0};
    const auto size = static_cast<std::uint32_t>(content_.size());
    const auto nice_length = static_cast<std::uint32_t>(effort.nice_length);
    std::uint32_t search_from = 0;
    CancellationPoint point;
    for (std::uint32_t position = 0; position < size; ++position) {
        point();
        first_.push_back(static_cast<std::uint32_t>(matches_.size()));
        if (size - position < kHashedLength) {
            continue;
        }
        if (position < search_from) {
            continue_longest();
            continue;
        }
        const std::uint32_t final_below = std::max(position, kUsualGroupLength) - kUsualGroupLength;
        find_short(position, final_below);
        find_long(position, final_below);
        if (longest_.length >= nice_length) {
            search_from = position + longest_.length;
        }
    }
    first_.push_back(static_cast<std::uint32_t>(matches_.size()));
}

// Finds the matches from the dictionary.
void MatchTable::search_dictionary(const ParserLimits& limits) {
    const DictionarySearch& dictionary = *limits.dictionary;
    const auto size = static_cast<std::uint32_t>(content_.size());
    CancellationPoint point;
    for (std::uint32_t position = 0; position < size; ++position) {
        point();
        first_from_dictionary_.push_back(static_cast<std::uint32_t>(from_dictionary_.size()));
        if (size - position < DictionarySearch::kReadLength) {
            continue;
        }
        const std::uint8_t* const here = content_.data() + position;
        std::uint32_t longest = kHashedLength - 1;
        dictionary.for_each(here, [&](std::uint32_t address) {
            const std::uint32_t limit =
                std::min({size - position, limits.max_match_length,
                          static_cast<std::uint32_t>(dictionary.content().size()) - address});
            const std::uint32_t length =
                common_length(dictionary.content().data() + address, here, limit);
            if (length > longest) {
                longest = length;
                from_dictionary_.push_back({address | kFromDictionary, length});
            }
        });
    }
    first_from_dictionary_.push_back(static_cast<std::uint32_t>(from_dictionary_.size()));
}

// Continues with the rest of the match of the position before.
void MatchTable::continue_longest() {
    if (--longest_.length >= kShortLength) {
        matches_.push_back(longest_);
    }
}

// Finds matches of exactly three bytes.
void MatchTable::find_short(std::uint32_t position, std::uint32_t final_below) {
    const auto here = load<std::uint32_t>(content_.data() + position);
    std::uint32_t link = previous_[position];
    for (std::size_t step = 0; step < kMaxShort && link != kNoPosition; ++step) {
        const std::uint32_t difference = here ^ load<std::uint32_t>(content_.data() + link);
        const bool same = (difference & 0xffffff) == 0;
        if (same && difference != 0) {
            matches_.push_back({position - link, kShortLength});
        }
        if (same && link + kShortLength <= final_below) {
            return;
        }
        link = previous_[link];
    }
}

void MatchTable::find_long(std::uint32_t position, std::uint32_t final_below) {
    std::uint32_t min_length = kHashedLength;
    if (longest_.length > kContinuedLength) {
        min_length = longest_.length;
        continue_longest();
    } else {
        longest_ = {0, 0};
    }
    finder_.find(position, min_length, final_below, found_);
    for (const Candidate& candidate : found_) {
        matches_.push_back({position - candidate.position, candidate.length});
        if (candidate.position + kFinalLengths * candidate.length <= final_below) {
            longest_ = matches_.back();
        }
    }
}

}  // namespace gompfs

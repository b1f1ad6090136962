// The matches of all positions of a block, found once, for a parser that goes over the block
// several times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/match_finder.h"

namespace gompfs {

struct FoundMatch {
    std::uint32_t offset;
    std::uint32_t length;
};

class MatchTable {
  public:
    // Matches of three bytes only pay if they are near; then they are among the first few
    // candidates.
    static constexpr std::size_t kMaxShort = 4;
    // The most matches per position: short ones, the continuation of a long one, and those of the
    // finder.
    static constexpr std::size_t kMaxFound = kMaxShort + 1 + NearestOfEachLength::kMaxSize;

    // Also finds matches from limits.dictionary.
    void fill(Bytes content, const ParserLimits& limits, const SearchEffort& effort);

    // The matches at a position, nearest first, except that the rest of a long match of the
    // position before comes first among the long ones. Inside a match of at least nice_length bytes
    // there are no others.
    std::span<const FoundMatch> at(std::uint32_t position) const {
        return {matches_.data() + first_[position], matches_.data() + first_[position + 1]};
    }

    bool has_dictionary() const { return !first_from_dictionary_.empty(); }

    // The matches from the dictionary, each longer than those before it: at most
    // DictionarySearch::kMaxFound. Their offsets have the bit kFromDictionary.
    std::span<const FoundMatch> from_dictionary(std::uint32_t position) const {
        if (!has_dictionary()) {
            return {};
        }
        return {from_dictionary_.data() + first_from_dictionary_[position],
                from_dictionary_.data() + first_from_dictionary_[position + 1]};
    }

  private:
    void find_all(const ParserLimits& limits, const SearchEffort& effort);
    void search_dictionary(const ParserLimits& limits);
    void continue_longest();
    void find_short(std::uint32_t position, std::uint32_t final_below);
    void find_long(std::uint32_t position, std::uint32_t final_below);

    Bytes content_;
    MatchFinder finder_;
    NearestOfEachLength found_;
    std::vector<FoundMatch> matches_;
    std::vector<std::uint32_t> first_;  // start of each position's matches, and the end of the last
    std::vector<FoundMatch> from_dictionary_;
    std::vector<std::uint32_t> first_from_dictionary_;  // likewise; empty without a dictionary
    FoundMatch longest_{};                              // of the position before
    PositionLinks<std::uint32_t> previous_;             // with the same hash of three bytes
};

}  // namespace gompfs

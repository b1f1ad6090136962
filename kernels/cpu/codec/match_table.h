// The matches of all positions of a block, found once for a parser that goes over them repeatedly.
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
    // Matches of three bytes pay where they are near; then the first few candidates have one.
    static constexpr std::size_t kMaxShort = 4;
    // How many matches a position may have: these, a continued one, and what the finder gives.
    static constexpr std::size_t kMaxFound = kMaxShort + 1 + NearestOfEachLength::kMaxSize;

    void fill(Bytes content, const ParserLimits& limits, const SearchEffort& effort);

    // Nearest first, but for the rest of a long match at the position before: that comes before the
    // longer ones. Inside a match of effort's nice_length, there are no others.
    std::span<const FoundMatch> at(std::uint32_t position) const {
        return {matches_.data() + first_[position], matches_.data() + first_[position + 1]};
    }

  private:
    void insert_short(std::uint32_t position);
    void continue_longest();
    void find_short(std::uint32_t position, std::uint32_t final_below);
    void find_long(std::uint32_t position, std::uint32_t final_below);

    Bytes content_;
    MatchFinder finder_;
    NearestOfEachLength found_;
    std::vector<FoundMatch> matches_;
    std::vector<std::uint32_t> first_;  // of each position, and the end of all
    FoundMatch longest_{};              // at the position before
    std::vector<std::uint32_t> head_;
    std::vector<std::uint32_t> previous_;  // the position before with the same hash of three bytes
};

}  // namespace gompfs

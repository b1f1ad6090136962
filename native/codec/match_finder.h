// Finds earlier occurrences of the bytes at a position, with hash chains over the whole block.
//
// All positions are put into the chains before the search, so a search can also follow the chain of
// a later position (see follow_chains in match_finder.cpp). The finder knows nothing of groups. The
// caller says below which position output is certainly legal to copy (final_below); candidates
// above that are reported too, because they may be legal.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/parser.h"
#include "codec/position_links.h"

namespace gompfs {

constexpr std::uint32_t kNoPosition = kNoLink<std::uint32_t>;

struct Candidate {
    std::uint32_t position;
    std::uint32_t length;
};

// Candidates that may be useful, nearest and longest first: each one is farther away than the one
// before, and shorter.
class Candidates {
  public:
    void clear() { size_ = 0; }
    bool empty() const { return size_ == 0; }
    const Candidate* begin() const { return items_.data(); }
    const Candidate* end() const { return items_.data() + size_; }
    const Candidate& longest() const { return items_[0]; }
    const Candidate& farthest() const { return items_[size_ - 1]; }

    // Adds a candidate that is farther away than all others, and drops those that are not longer
    // than it. If there are too many, replaces the last one.
    void add(const Candidate& candidate) {
        while (size_ > 0 && items_[size_ - 1].length <= candidate.length) {
            --size_;
        }
        size_ = std::min<std::size_t>(size_, items_.size() - 1);
        items_[size_++] = candidate;
    }

  private:
    std::array<Candidate, 8> items_;
    std::size_t size_ = 0;
};

// All candidates that give a longer match than any nearer candidate that is final, nearest first.
class NearestOfEachLength {
  public:
    static constexpr std::size_t kMaxSize = 24;

    void clear() { size_ = 0; }
    const Candidate* begin() const { return items_.data(); }
    const Candidate* end() const { return items_.data() + size_; }

    // Adds a candidate that is farther away than all others. If there are too many, replaces the
    // last one.
    void add(const Candidate& candidate) {
        size_ = std::min(size_, kMaxSize - 1);
        items_[size_++] = candidate;
    }

  private:
    std::array<Candidate, kMaxSize> items_;
    std::size_t size_ = 0;
};

class MatchFinder {
  public:
    // Builds the chains. If final_below (see find) is only an estimate, final_lengths should be
    // above 1: a candidate then counts as final only if final_lengths times its length fits between
    // its start and final_below, so that longer candidates keep a larger distance.
    void start(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::uint32_t final_lengths = 1);

    // Fills `found` with candidates for a match of at least min_length bytes (4 or more) at
    // `position`. Output below final_below may always be copied: after a candidate that ends below
    // it, only longer candidates are searched.
    template <typename Found>
    void find(std::uint32_t position, std::uint32_t min_length, std::uint32_t final_below,
              Found& found) const;

  private:
    struct Search {
        std::uint32_t position;
        std::uint32_t limit;  // maximum length
        std::uint32_t final_below;
        std::uint32_t final_lengths;
        std::uint32_t period;      // period of the run that the position lies in or begins
        std::uint32_t run_length;  // from the position on; 0 if the position is not in a run
        std::uint32_t run_ahead;   // the same, or the length of a run of one byte that begins here

        bool is_final(const Candidate& candidate) const {
            return candidate.position + final_lengths * candidate.length <= final_below;
        }
    };

    Search start_search(std::uint32_t position, std::uint32_t limit,
                        std::uint32_t final_below) const;
    Candidate find_in_run(const Search& search) const;
    template <typename Found>
    void follow_chains(const Search& search, std::uint32_t passed, std::uint32_t min_length,
                       Found& found) const;
    std::uint32_t next_link(const Search& search, const Candidate& candidate, std::uint32_t shift,
                            std::uint32_t link, int& num_steps) const;

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint32_t max_match_length_ = 0;
    std::uint32_t max_match_offset_ = 0;
    std::uint32_t final_lengths_ = 1;
    int chain_length_ = 0;
    PositionLinks<std::uint32_t> previous_;  // with the same hash of four bytes
};

}  // namespace gompfs

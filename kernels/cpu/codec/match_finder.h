// Earlier occurrences of the bytes at a position, from hash chains over the whole block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/parser.h"

namespace gompfs {

constexpr std::uint32_t kNoPosition = ~0u;

struct Candidate {
    std::uint32_t position;
    std::uint32_t length;
};

// The candidates that may be of use, nearest and longest first: each lies farther away than the one
// before, and is shorter.
class Candidates {
  public:
    void clear() { size_ = 0; }
    bool empty() const { return size_ == 0; }
    const Candidate* begin() const { return items_.data(); }
    const Candidate* end() const { return items_.data() + size_; }
    const Candidate& longest() const { return items_[0]; }
    const Candidate& farthest() const { return items_[size_ - 1]; }

    // Adds one that lies farther away than all others: it makes those useless that are no longer.
    // Where there are too many, the last one gives way.
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

// All candidates that make a longer match than any nearer one that is final, nearest first.
class NearestOfEachLength {
  public:
    static constexpr std::size_t kMaxSize = 24;

    void clear() { size_ = 0; }
    const Candidate* begin() const { return items_.data(); }
    const Candidate* end() const { return items_.data() + size_; }

    // Adds one that lies farther away than all others. Where there are too many, the last one gives
    // way.
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
    // Where final_below (see find) is a guess, a candidate should keep the more away from it the
    // longer it is: final_lengths times its length must fit between its start and there.
    void start(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::uint32_t final_lengths = 1);

    // Fills found with candidates for a match of at least min_length (4 or more) at position. What
    // lies below final_below may always be copied: behind a candidate that ends there, only longer
    // ones are looked for.
    template <typename Found>
    void find(std::uint32_t position, std::uint32_t min_length, std::uint32_t final_below,
              Found& found) const;

  private:
    struct Search {
        std::uint32_t position;
        std::uint32_t limit;  // of lengths
        std::uint32_t final_below;
        std::uint32_t final_lengths;
        std::uint32_t period;      // of the run that the position lies in, or begins
        std::uint32_t run_length;  // from the position on; 0 where it lies in none
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
    std::vector<std::uint32_t> head_;
    std::vector<std::uint32_t> previous_;  // the position before with the same hash of four bytes
};

}  // namespace gompfs

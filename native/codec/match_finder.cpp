// Implements the search for matches; see match_finder.h.
//
// Algorithm
//
// A simple hash chain of the first four bytes visits many candidates that are not longer than the
// best one so far. Here the chain that is followed belongs to the four bytes that end one byte
// after the best match so far: any longer match must contain them at that position. This chain is
// much shorter.
//
// Runs
//
// In content with a short period (a run, such as zeros) every earlier position of the run is a
// candidate, and following them one by one would take quadratic time. find_in_run computes the
// useful candidate in the run of the position directly, and next_link jumps over earlier runs.
#include "codec/match_finder.h"

#include <algorithm>

#include "codec/match_length.h"

namespace gompfs {
namespace {

// Longer periods have so few candidates that they need no special treatment.
constexpr std::uint32_t kMaxPeriod = 32;

constexpr int kHashBits = 16;

}  // namespace

void MatchFinder::start(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                        std::uint32_t final_lengths) {
    final_lengths_ = final_lengths;
    bytes_ = content.data();
    size_ = static_cast<std::uint32_t>(content.size());
    max_match_length_ = limits.max_match_length;
    max_match_offset_ = limits.max_match_offset;
    chain_length_ = effort.chain_length;
    link_four_bytes<kHashBits>(content, previous_);
}

MatchFinder::Search MatchFinder::start_search(std::uint32_t position, std::uint32_t limit,
                                              std::uint32_t final_below) const {
    Search search{position, limit, final_below, final_lengths_, position - previous_[position],
                  0,        0};
    if (previous_[position] != kNoPosition && search.period <= kMaxPeriod) {
        search.run_length = common_length(bytes_ + previous_[position], bytes_ + position, limit);
        search.run_ahead = search.run_length;
    } else if (limit > kHashedLength && load<std::uint32_t>(bytes_ + position) ==
                                            load<std::uint32_t>(bytes_ + position + 1)) {
        search.period = 1;
        search.run_ahead = 1 + common_length(bytes_ + position, bytes_ + position + 1, limit - 1);
    }
    return search;
}

// Returns the best candidate in the run that the position lies in. All candidates of a run reach
// the run's end, so only the nearest candidate that is final is useful, or the farthest if none is
// final.
Candidate MatchFinder::find_in_run(const Search& search) const {
    const std::uint32_t period = search.period;
    const Candidate nearest{search.position - period, search.run_length};
    std::uint32_t wanted = nearest.position;
    if (!search.is_final(nearest)) {
        const std::uint32_t excess =
            nearest.position + search.final_lengths * nearest.length - search.final_below;
        wanted -= std::min((excess + period - 1) / period, wanted / period) * period;
    }
    std::uint32_t begin = nearest.position;
    while (begin > wanted && bytes_[begin - 1] == bytes_[begin - 1 + period]) {
        --begin;
    }
    return {nearest.position - (nearest.position - begin) / period * period, nearest.length};
}

// Returns the link to continue with after a candidate, if `link` is next in the chain. In an
// earlier run, candidates that are farther away are longer: continues with the one that reaches as
// far as this run does.
std::uint32_t MatchFinder::next_link(const Search& search, const Candidate& candidate,
                                     std::uint32_t shift, std::uint32_t link,
                                     int& num_steps) const {
    if (candidate.length < search.run_ahead) {
        const std::uint32_t missing = search.run_ahead - candidate.length;
        const std::uint32_t back = (missing + search.period - 1) / search.period * search.period;
        const std::uint32_t length = shift + kHashedLength;
        if (back <= candidate.position &&
            common_length(bytes_ + candidate.position - back, bytes_ + search.position, length) ==
                length) {
            return candidate.position - back + shift;
        }
    }
    while (num_steps > 0 && link != kNoPosition && link >= candidate.position + shift) {
        --num_steps;
        link = previous_[link];
    }
    return link;
}

// Checks the candidates before `passed`, nearest first. A match longer than the longest so far must
// contain the four bytes that end one byte after it. The chain of these four bytes is followed: it
// is much shorter than the chain of the first four, because the bytes after a match are rarely the
// same.
template <typename Found>
void MatchFinder::follow_chains(const Search& search, std::uint32_t passed,
                                std::uint32_t min_length, Found& found) const {
    const std::uint8_t* const here = bytes_ + search.position;
    std::uint32_t shift = min_length - kHashedLength;  // from the match to the four bytes
    std::uint32_t link = previous_[passed + shift];
    for (int num_steps = chain_length_; num_steps > 0; --num_steps) {
        if (link == kNoPosition || link < shift ||
            search.position + shift - link > max_match_offset_) {
            return;
        }
        Candidate candidate{link - shift, 0};
        const std::uint8_t* const there = bytes_ + candidate.position;
        link = previous_[link];
        if (load<std::uint32_t>(there) != load<std::uint32_t>(here) ||
            load<std::uint32_t>(there + shift) != load<std::uint32_t>(here + shift)) {
            continue;
        }
        candidate.length = common_length(there, here, search.limit);
        if (candidate.length < shift + kHashedLength) {
            continue;
        }
        found.add(candidate);
        if (search.is_final(candidate)) {
            if (candidate.length == search.limit) {
                return;
            }
            shift = candidate.length - kHashedLength + 1;
            link = previous_[search.position + shift];
        }
        link = next_link(search, candidate, shift, link, num_steps);
    }
}

template <typename Found>
void MatchFinder::find(std::uint32_t position, std::uint32_t min_length, std::uint32_t final_below,
                       Found& found) const {
    found.clear();
    const std::uint32_t limit = std::min(size_ - position, max_match_length_);
    if (limit < min_length) {
        return;
    }
    const Search search = start_search(position, limit, final_below);
    std::uint32_t passed = position;
    if (search.run_length >= min_length) {
        const Candidate in_run = find_in_run(search);
        found.add(in_run);
        if (!search.is_final(in_run)) {
            passed = in_run.position;
        } else if (in_run.length == limit) {
            return;
        } else {
            min_length = in_run.length + 1;
        }
    }
    follow_chains(search, passed, min_length, found);
}

template void MatchFinder::find(std::uint32_t, std::uint32_t, std::uint32_t, Candidates&) const;
template void MatchFinder::find(std::uint32_t, std::uint32_t, std::uint32_t,
                                NearestOfEachLength&) const;

}  // namespace gompfs

// A parser that searches for the cheapest sequences of a codec without entropy coding
// (gompresso-byte), with dependency elimination. Without it, backward_parser.cpp is faster.
//
// Algorithm
//
// Dynamic programming forwards over positions, as in optimal LZ parsing in general. The cost of a
// byte or a sequence is fixed, so the cheapest way to a position can be kept as one state: the last
// sequence and the number of literals after it. A state offers itself to the next position (one
// more literal) and to the end of every useful match.
//
// Dependency elimination
//
// Which bytes a match may copy depends on where its group began and on the matches of the group so
// far. So each position has one state per phase, where the phase is the number of sequences in the
// open group. A source is certainly legal below final_below, where the first match of the open
// group begins; for a source above it, legal_length walks back over the group's matches. The states
// of the phases usually reach a position by ways that cut groups at different positions, so the
// rule costs little compression.
//
// Windows
//
// Positions are parsed in windows, so that the states stay in the cache. A window begins with a
// group. When a window ends, its sequences are committed up to the last group that is not affected
// by the cut (commit).
#include "codec/optimal_parser.h"

#include <algorithm>
#include <array>
#include <memory>

#include "codec/match_finder.h"
#include "common/cancellation.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

// Costs are in 1/16 byte. A sequence takes a token and an offset (3 bytes), and is charged slightly
// more because fewer sequences decode faster.
constexpr std::int32_t kByteCost = 16;
constexpr std::int32_t kSequenceCost = 3 * kByteCost + 1;
constexpr std::int32_t kUnreachable = 1 << 28;

constexpr std::uint32_t kExtendedMatchLength = kByteMatchEscape + kByteMinMatchLength - 1;

// The match of a sequence, packed into one number; 0 if it has none.
std::int32_t pack_match(std::uint32_t length, std::uint32_t offset) {
    return static_cast<std::int32_t>(offset << 16 | length);
}
std::uint32_t match_length(std::int32_t match) { return match & 0xffff; }
std::uint32_t match_offset(std::int32_t match) { return static_cast<std::uint32_t>(match) >> 16; }

template <std::uint32_t kNumPhases>
class OptimalParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    using Lanes = std::array<std::int32_t, kNumPhases>;  // a number per phase

    // Number of positions that are parsed together: few enough to stay in the cache, but more than
    // a group can span.
    static constexpr std::uint32_t kWindowSize = std::max(8192u, 1024 * kNumPhases);

    // For each phase, the cheapest way to a position. It ends with a sequence and zero or more
    // literals.
    struct alignas(16 * kNumPhases) States {
        Lanes cost;
        Lanes match;           // of the last sequence
        Lanes literal_length;  // number of literals after the last sequence
        Lanes final_below;     // output below it contains no match of the open group
    };

    static constexpr std::uint32_t phase_after(std::uint32_t phase) {
        return (phase + 1) % kNumPhases;
    }
    static constexpr std::uint32_t phase_before(std::uint32_t phase) {
        return (phase + kNumPhases - 1) % kNumPhases;
    }

    States& at(std::uint32_t position) { return states_[position - begin_]; }
    void start_window();
    void parse_window();
    void arrive(std::uint32_t position);
    void arrive_after_full_sequences(std::uint32_t position);
    void search(std::uint32_t position);
    std::uint32_t useful_length(const States& here, std::uint32_t position) const;
    std::uint32_t final_below(const States& here) const;
    std::uint32_t legal_length(std::uint32_t position, std::uint32_t phase,
                               const Candidate& candidate);
    Candidate longest_legal(std::uint32_t position, std::uint32_t phase);
    void offer(std::uint32_t position, std::uint32_t min_length, const Candidate& match,
               const Lanes& cost);
    void offer_lengths(std::uint32_t position, std::uint32_t first, std::uint32_t last,
                       std::uint32_t offset, const Lanes& cost);
    std::uint32_t cheapest_phase();
    std::uint32_t commit(std::vector<Sequence>& sequences);

    std::uint32_t size_ = 0;
    std::uint32_t nice_length_ = 0;
    MatchFinder finder_;
    Candidates found_;
    std::uint32_t begin_ = 0;  // start of the window; a group begins there
    std::uint32_t end_ = 0;
    std::uint32_t search_from_ = 0;
    std::vector<States> states_;  // one per position of the window
    Lanes farthest_end_{};        // end of the farthest match offered, per phase
    Lanes farthest_cost_{};
    std::vector<Sequence> way_;  // the committed sequences, last first
};

template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::parse(Bytes content, const ParserLimits& limits,
                                      const SearchEffort& effort,
                                      std::vector<Sequence>& sequences) {
    size_ = static_cast<std::uint32_t>(content.size());
    nice_length_ = static_cast<std::uint32_t>(effort.nice_length);
    finder_.start(content, limits, effort);
    states_.resize(std::min(size_, kWindowSize) + 1);
    sequences.clear();
    for (begin_ = 0; begin_ < size_; begin_ = commit(sequences)) {
        throw_if_cancelled();
        end_ = begin_ + std::min(size_ - begin_, kWindowSize);
        parse_window();
    }
}

template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::start_window() {
    for (std::uint32_t position = begin_; position <= end_; ++position) {
        at(position).cost.fill(kUnreachable);
        at(position).match.fill(0);
    }
    States& first = at(begin_);
    first.cost[0] = 0;
    first.literal_length.fill(0);
    first.final_below.fill(static_cast<std::int32_t>(begin_));
    farthest_end_.fill(0);
    farthest_cost_.fill(kUnreachable);
    search_from_ = begin_;
}

template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::parse_window() {
    start_window();
    search(begin_);
    for (std::uint32_t position = begin_ + 1; position < end_; ++position) {
        arrive(position);
        if (position >= search_from_) {
            search(position);
        }
    }
    arrive(end_);
}

// Chooses between the best match offered to this position and one more literal after the previous
// position.
template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::arrive(std::uint32_t position) {
    const States& before = at(position - 1);
    States& here = at(position);
    bool any_full = false;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const bool extends = before.literal_length[phase] == kByteLiteralEscape - 1;
        const bool full = before.literal_length[phase] == kByteMaxLiteralLength;
        const std::int32_t literal_cost = extends ? 2 * kByteCost : kByteCost;
        const std::int32_t cost = full ? kUnreachable : before.cost[phase] + literal_cost;
        const bool literal = cost < here.cost[phase];
        here.cost[phase] = literal ? cost : here.cost[phase];
        here.match[phase] = literal ? before.match[phase] : here.match[phase];
        here.literal_length[phase] = literal ? before.literal_length[phase] + 1 : 0;
        here.final_below[phase] = before.final_below[phase];
        any_full |= full;
    }
    here.final_below[0] = static_cast<std::int32_t>(position);
    for (std::uint32_t phase = 1; phase < kNumPhases; ++phase) {
        if (here.literal_length[phase] == 0) {
            const std::uint32_t match_begin = position - match_length(here.match[phase]);
            here.final_below[phase] = at(match_begin).final_below[phase - 1];
        }
    }
    if (any_full) [[unlikely]] {
        arrive_after_full_sequences(position);
    }
}

// A literal string that is too long for one sequence: the sequence ends without a match, and the
// last literal begins a new one.
template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::arrive_after_full_sequences(std::uint32_t position) {
    const States& before = at(position - 1);
    States& here = at(position);
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const std::uint32_t next = phase_after(phase);
        const std::int32_t cost = before.cost[phase] + kSequenceCost + kByteCost;
        if (before.literal_length[phase] == kByteMaxLiteralLength && cost < here.cost[next]) {
            here.cost[next] = cost;
            here.match[next] = 0;
            here.literal_length[next] = 1;
            here.final_below[next] =
                next == 0 ? static_cast<std::int32_t>(position) : before.final_below[phase];
        }
    }
}

// Offers the matches that begin at a position to the positions where they may end.
template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::search(std::uint32_t position) {
    const States& here = at(position);
    const std::uint32_t min_length = useful_length(here, position);
    const std::uint32_t final_end = final_below(here);
    finder_.find(position, min_length, final_end, found_);
    if (found_.empty()) {
        return;
    }
    const auto is_final = [&](const Candidate& candidate) {
        return candidate.position + candidate.length <= final_end;
    };
    Lanes cost;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        cost[phase_after(phase)] = here.cost[phase] + kSequenceCost;
    }
    if (is_final(found_.longest())) {
        offer(position, min_length, found_.longest(), cost);
    } else {
        for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
            Lanes cost_of_phase;
            cost_of_phase.fill(kUnreachable);
            cost_of_phase[phase_after(phase)] = cost[phase_after(phase)];
            offer(position, min_length, longest_legal(position, phase), cost_of_phase);
        }
    }
    const Candidate& farthest = found_.farthest();
    if (is_final(farthest) && farthest.length >= nice_length_) {
        search_from_ = position + farthest.length;
    }
}

// The least length from which a match may be cheaper than literals, whether the literals follow a
// state of this position or the farthest match that was offered.
template <std::uint32_t kNumPhases>
std::uint32_t OptimalParser<kNumPhases>::useful_length(const States& here,
                                                       std::uint32_t position) const {
    std::int32_t useful = kUnreachable;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        const std::uint32_t next = phase_after(phase);
        const std::int32_t cost = here.cost[phase] + kSequenceCost;
        const std::int32_t after_here = (cost - here.cost[next]) / kByteCost;
        const std::int32_t num_literals = (cost - farthest_cost_[next]) / kByteCost;
        const std::int32_t after_farthest =
            farthest_end_[next] - static_cast<std::int32_t>(position) + std::max(num_literals, 1);
        useful = std::min(useful, std::max(after_here, num_literals < 0 ? 0 : after_farthest));
    }
    return static_cast<std::uint32_t>(std::max(useful, kByteMinMatchLength));
}

// Output below this is legal to copy in all phases.
template <std::uint32_t kNumPhases>
std::uint32_t OptimalParser<kNumPhases>::final_below(const States& here) const {
    return static_cast<std::uint32_t>(
        *std::min_element(here.final_below.begin(), here.final_below.end()));
}

// The number of bytes of a candidate that may be copied in a phase: up to the next match of the
// open group.
template <std::uint32_t kNumPhases>
std::uint32_t OptimalParser<kNumPhases>::legal_length(std::uint32_t position, std::uint32_t phase,
                                                      const Candidate& candidate) {
    std::uint32_t legal_end = position;
    for (; phase > 0; --phase) {
        const std::uint32_t match_end =
            position - static_cast<std::uint32_t>(at(position).literal_length[phase]);
        const std::uint32_t match_begin = match_end - match_length(at(position).match[phase]);
        if (candidate.position >= match_end) {
            break;
        }
        if (candidate.position >= match_begin) {
            return 0;
        }
        legal_end = match_begin < match_end ? match_begin : legal_end;
        position = match_begin;
    }
    return std::min(candidate.length, legal_end - candidate.position);
}

template <std::uint32_t kNumPhases>
Candidate OptimalParser<kNumPhases>::longest_legal(std::uint32_t position, std::uint32_t phase) {
    Candidate longest{0, 0};
    for (const Candidate& candidate : found_) {
        if (candidate.length <= longest.length) {
            break;
        }
        const std::uint32_t length = legal_length(position, phase, candidate);
        if (length > longest.length) {
            longest = {candidate.position, length};
        }
    }
    return longest;
}

template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::offer(std::uint32_t position, std::uint32_t min_length,
                                      const Candidate& match, const Lanes& cost) {
    const std::uint32_t offset = position - match.position;
    const std::uint32_t length = std::min(match.length, end_ - position);
    if (length < min_length) {
        return;
    }
    offer_lengths(position, min_length, std::min(length, kExtendedMatchLength - 1), offset, cost);
    Lanes end_cost = cost;
    if (length >= kExtendedMatchLength) {
        for (std::int32_t& lane : end_cost) {
            lane += kByteCost;
        }
        offer_lengths(position, std::max(min_length, kExtendedMatchLength), length, offset,
                      end_cost);
    }
    const std::int32_t end = static_cast<std::int32_t>(position + length);
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        if (end_cost[phase] < kUnreachable && end > farthest_end_[phase]) {
            farthest_end_[phase] = end;
            farthest_cost_[phase] = end_cost[phase];
        }
    }
}

// Offers the lengths from the longest down to the first that improves nothing. Shorter ones rarely
// improve anything either: usually an earlier match is better for all of them.
template <std::uint32_t kNumPhases>
void OptimalParser<kNumPhases>::offer_lengths(std::uint32_t position, std::uint32_t first,
                                              std::uint32_t last, std::uint32_t offset,
                                              const Lanes& cost) {
    for (std::uint32_t length = last; length >= first; --length) {
        States& target = at(position + length);
        const std::int32_t match = pack_match(length, offset);
        bool useful = false;
        for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
            const bool cheaper = cost[phase] < target.cost[phase];
            target.cost[phase] = cheaper ? cost[phase] : target.cost[phase];
            target.match[phase] = cheaper ? match : target.match[phase];
            useful |= cheaper;
        }
        if (!useful) {
            return;
        }
    }
}

// The phase in which to end the window. Literals at the end of the block need a sequence of their
// own.
template <std::uint32_t kNumPhases>
std::uint32_t OptimalParser<kNumPhases>::cheapest_phase() {
    Lanes cost = at(end_).cost;
    for (std::uint32_t phase = 0; phase < kNumPhases; ++phase) {
        if (end_ == size_ && at(end_).literal_length[phase] > 0) {
            cost[phase] += kSequenceCost;
        }
    }
    return static_cast<std::uint32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
}

// Appends the cheapest way through the window, and returns where it ends. Before the end of the
// block that is the end of the last complete group before the window's end: a match that reaches
// the window's end may have been cut there.
template <std::uint32_t kNumPhases>
std::uint32_t OptimalParser<kNumPhases>::commit(std::vector<Sequence>& sequences) {
    static_assert(kWindowSize > (kNumPhases + 1) * (kByteMaxLiteralLength + kByteMaxMatchLength));
    std::uint32_t phase = cheapest_phase();
    std::uint32_t position = end_;
    std::uint32_t literal_length = at(end_).literal_length[phase];
    std::uint32_t committed = end_ == size_ ? end_ : begin_;
    way_.clear();
    if (literal_length > 0) {
        way_.push_back({literal_length, 0, 0});
    }
    while (position - literal_length > begin_) {
        const std::uint32_t match_end = position - literal_length;
        if (committed == begin_ && phase == 0 && match_end < end_) {
            committed = match_end;
            way_.clear();
        }
        const std::int32_t match = at(position).match[phase];
        position = match_end - match_length(match);
        phase = phase_before(phase);
        literal_length = at(position).literal_length[phase];
        way_.push_back({literal_length, match_length(match), match_offset(match)});
    }
    sequences.insert(sequences.end(), way_.rbegin(), way_.rend());
    return committed;
}

template <std::uint32_t kNumPhases>
void parse_in_phases(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                     std::vector<Sequence>& sequences) {
    thread_local const auto parser = std::make_unique<OptimalParser<kNumPhases>>();
    parser->parse(content, limits, effort, sequences);
}

}  // namespace

void parse_block_optimally(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences) {
    static_assert(kMinGroupSizeLog2 == 2 && kMaxGroupSizeLog2 == 5);
    const auto parse = limits.group_size_log2 == 2   ? parse_in_phases<4>
                       : limits.group_size_log2 == 3 ? parse_in_phases<8>
                       : limits.group_size_log2 == 4 ? parse_in_phases<16>
                                                     : parse_in_phases<32>;
    parse(content, limits, effort, sequences);
}

}  // namespace gompfs

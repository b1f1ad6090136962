// Dynamic programming over the positions of a block. What a match may copy depends on the sequences
// before it, back to the start of its group, so that each position has one state for each phase:
// how many sequences of the open group there are. A state knows the cheapest way to it, and
// extends it by a literal or by the longest match that its high-water mark allows, or any shorter.
#include "codec/optimal_parser.h"

#include <algorithm>
#include <array>
#include <memory>

#include "codec/match_length.h"
#include "format_constants.h"

namespace gompfs {
namespace {

constexpr std::uint32_t kNone = ~0u;
constexpr std::uint32_t kWindow = 1 << 14;  // positions decided at once: their states stay in cache
constexpr std::uint32_t kWide = 8;          // bytes by which long matches are found
constexpr int kMaxPhases = 1 << kDefaultGroupSizeLog2;
// Costs count 1/16 byte.
constexpr std::uint32_t kByte = 16;
constexpr std::uint32_t kSequence = 3 * kByte + 1;  // a little more than its bytes: it takes time
constexpr std::uint32_t kHopeless = 2 * kByte;      // a state that costs so much more is given up
constexpr std::uint32_t kLongMatch = kByteMatchEscape + kByteMinMatchLength - 1;

struct State {
    std::uint32_t cost;
    std::uint32_t high_water_mark;
    std::uint16_t literal_run;   // literals since the last sequence ended
    std::uint16_t match_length;  // of the match that ends here; 0 for a literal
    std::uint16_t match_offset;
    bool splits;  // the run began behind a sequence of literals only, which could hold no more
};

// Whether the step to a state ends a sequence: its own, or the full one before its literal.
bool ends_sequence(const State& state) {
    return state.match_length != 0 || (state.splits && state.literal_run == 1);
}

constexpr State kUnreached{kNone, 0, 0, 0, 0, false};

// Positions of the same hash, the latest first.
class HashChains {
  public:
    void reset(std::size_t size) {
        head_.assign(std::size_t{1} << kHashBits, kNone);
        previous_.resize(size);
    }
    void insert(std::uint32_t hash, std::uint32_t position) {
        previous_[position] = head_[hash];
        head_[hash] = position;
    }
    std::uint32_t latest(std::uint32_t hash) const { return head_[hash]; }
    std::uint32_t before(std::uint32_t position) const { return previous_[position]; }

  private:
    std::vector<std::uint32_t> head_;
    std::vector<std::uint32_t> previous_;
};

struct Candidate {
    std::uint32_t position;
    std::uint32_t length;
};

class OptimalParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    State& state(std::uint32_t position, std::uint32_t phase) {
        return states_[(position - start_) * kMaxPhases + phase];
    }
    void parse_window(std::uint32_t end);
    void find_candidates(std::uint32_t position, std::uint32_t low_water_mark);
    std::uint32_t walk(const HashChains& chains, std::uint32_t candidate, std::uint32_t position,
                       std::uint32_t low_water_mark, int steps, std::uint32_t least,
                       std::uint32_t most);
    std::uint32_t find_start_of_run(std::uint32_t position, std::uint32_t period,
                                    std::uint32_t limit);
    void insert_before(std::uint32_t position);
    void extend_by_literal(std::uint32_t position, std::uint32_t phase);
    std::uint32_t extend_by_match(std::uint32_t position, std::uint32_t phase);
    void arrive(std::uint32_t position, std::uint32_t phase, const State& arriving);
    std::uint32_t allowed_length(std::uint32_t position, std::uint32_t phase,
                                 const Candidate& candidate);
    std::uint32_t cheapest_phase(std::uint32_t position);
    void emit(std::uint32_t end, std::vector<Sequence>& sequences);

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    ParserLimits limits_{};
    SearchEffort effort_{};
    std::uint32_t num_phases_ = 0;
    std::uint32_t start_ = 0;         // of the window
    std::uint32_t inserted_ = 0;      // positions below are in the chains
    std::uint32_t num_literals_ = 0;  // decided, but in no sequence yet
    // The run of a short period that was looked at last
    std::uint32_t run_period_ = 0;
    std::uint32_t run_position_ = 0;
    std::uint32_t run_start_ = 0;
    std::vector<State> states_;
    std::vector<Candidate> candidates_;  // nearer ones first, each longer than those behind it
    HashChains narrow_;                  // by 4 bytes
    HashChains wide_;                    // by kWide bytes
    std::vector<const State*> path_;
};

void OptimalParser::insert_before(std::uint32_t position) {
    for (; inserted_ < position && inserted_ + kWide <= size_; ++inserted_) {
        narrow_.insert(hash4(bytes_ + inserted_), inserted_);
        wide_.insert(hash8(bytes_ + inserted_), inserted_);
    }
}

// Adds the candidates of a chain whose matches are longer than least and than those that any state
// may copy; looks for no longer ones than most. Returns the longest that any state may copy.
//
// Of two candidates, the farther one is at least as likely to be allowed, and costs the same: the
// nearer one counts only where it is longer.
std::uint32_t OptimalParser::walk(const HashChains& chains, std::uint32_t candidate,
                                  std::uint32_t position, std::uint32_t low_water_mark, int steps,
                                  std::uint32_t least, std::uint32_t most) {
    for (; steps > 0 && candidate != kNone && position - candidate <= limits_.max_match_offset &&
           least < most;
         --steps, candidate = chains.before(candidate)) {
        if (load<std::uint32_t>(bytes_ + candidate + least - 3) !=
            load<std::uint32_t>(bytes_ + position + least - 3)) {
            continue;
        }
        const std::uint32_t length = common_length(bytes_ + candidate, bytes_ + position, most);
        if (length <= least) {
            continue;
        }
        while (!candidates_.empty() && candidates_.back().length <= length) {
            candidates_.pop_back();
        }
        candidates_.push_back({candidate, length});
        if (candidate + length <= low_water_mark) {
            least = length;
        }
    }
    return least;
}

// Where bytes repeat with a short period, chains hold nothing but the last few of them, which no
// state may copy. The first of them are a candidate; returns where they are.
std::uint32_t OptimalParser::find_start_of_run(std::uint32_t position, std::uint32_t period,
                                               std::uint32_t limit) {
    if (period != run_period_ || position != run_position_ + 1) {
        run_period_ = period;
        run_start_ = position - period;
        const std::uint32_t least = position - std::min(position, limits_.max_match_offset);
        while (run_start_ > least && bytes_[run_start_ - 1] == bytes_[run_start_ - 1 + period]) {
            --run_start_;
        }
    }
    run_position_ = position;
    const std::uint32_t first = run_start_ + (position - run_start_) % period;
    if (first < candidates_.back().position && position - first <= limits_.max_match_offset) {
        candidates_.push_back({first, common_length(bytes_ + first, bytes_ + position, limit)});
    }
    return first;
}

// Long matches are looked for first, in chains that hold little else.
void OptimalParser::find_candidates(std::uint32_t position, std::uint32_t low_water_mark) {
    candidates_.clear();
    insert_before(position);
    if (size_ - position < kWide) {
        return;
    }
    const std::uint32_t limit = std::min(size_ - position, limits_.max_match_length);
    std::uint32_t longest = walk(wide_, wide_.latest(hash8(bytes_ + position)), position,
                                 low_water_mark, effort_.chain_length, kWide - 1, limit);
    if (longest < kWide && !candidates_.empty()) {
        const std::uint32_t period = position - candidates_.front().position;
        const std::uint32_t first = find_start_of_run(position, period, limit);
        longest = walk(wide_, wide_.before(first), position, low_water_mark, effort_.chain_length,
                       kWide - 1, limit);
    }
    if (longest < kWide) {
        walk(narrow_, narrow_.latest(hash4(bytes_ + position)), position, low_water_mark,
             effort_.chain_length / 2, limits_.min_match_length - 1, kWide - 1);
    }
}

// How much of a match a state may copy: what lies below its high-water mark or in literals of its
// group. Literals that the windows before decided are not looked at.
std::uint32_t OptimalParser::allowed_length(std::uint32_t position, std::uint32_t phase,
                                            const Candidate& candidate) {
    const State* at = &state(position, phase);
    const std::uint32_t mark = at->high_water_mark;
    if (candidate.position + candidate.length <= mark) {
        return candidate.length;
    }
    std::uint32_t allowed = candidate.position < mark ? mark - candidate.position : 0;
    const std::uint32_t wanted = candidate.position + allowed;
    std::uint32_t end = position;
    for (std::uint32_t sequence = 0;; ++sequence) {
        const std::uint32_t literals_start = end - std::min<std::uint32_t>(at->literal_run, end);
        if (wanted >= literals_start) {
            return std::min(candidate.length, wanted < end ? end - candidate.position : allowed);
        }
        if (sequence == phase || literals_start <= start_ || at->splits) {
            return allowed;
        }
        end = literals_start - state(literals_start, phase - sequence).match_length;
        at = &state(end, phase - sequence - 1);
    }
}

void OptimalParser::arrive(std::uint32_t position, std::uint32_t phase, const State& arriving) {
    State& known = state(position, phase);
    if (arriving.cost < known.cost) {
        known = arriving;
    }
}

void OptimalParser::extend_by_literal(std::uint32_t position, std::uint32_t phase) {
    State next = state(position, phase);
    next.match_length = next.match_offset = 0;
    next.cost += kByte;
    if (next.literal_run == limits_.max_literal_length) {
        next.cost += kSequence;
        next.literal_run = 0;
        next.splits = true;
        phase = (phase + 1) % num_phases_;
        if (phase == 0 && limits_.dependency_elimination) {
            next.high_water_mark = position;
        }
    }
    ++next.literal_run;
    next.cost += next.literal_run == kByteLiteralEscape ? kByte : 0;
    arrive(position + 1, phase, next);
}

// Returns the length of the longest match.
std::uint32_t OptimalParser::extend_by_match(std::uint32_t position, std::uint32_t phase) {
    Candidate best{0, limits_.min_match_length - 1};
    for (const Candidate& candidate : candidates_) {
        if (candidate.length <= best.length) {
            break;
        }
        const std::uint32_t length = allowed_length(position, phase, candidate);
        if (length > best.length) {
            best = {candidate.position, length};
        }
    }
    const State& from = state(position, phase);
    const std::uint32_t next_phase = (phase + 1) % num_phases_;
    State next{from.cost + kSequence, from.high_water_mark, 0, 0, 0, false};
    next.match_offset = static_cast<std::uint16_t>(position - best.position);
    const auto arrive_with = [&](std::uint32_t length, std::uint32_t extension) {
        next.match_length = static_cast<std::uint16_t>(length);
        next.cost = from.cost + kSequence + extension;
        if (next_phase == 0 && limits_.dependency_elimination) {
            next.high_water_mark = position + length;
        }
        arrive(position + length, next_phase, next);
    };
    if (best.length >= kLongMatch) {
        arrive_with(best.length, kByte);
    }
    for (std::uint32_t length = std::min(best.length, kLongMatch - 1);
         length >= limits_.min_match_length; --length) {
        arrive_with(length, 0);
    }
    return best.length;
}

std::uint32_t OptimalParser::cheapest_phase(std::uint32_t position) {
    std::uint32_t best = 0;
    for (std::uint32_t phase = 1; phase < num_phases_; ++phase) {
        if (state(position, phase).cost < state(position, best).cost) {
            best = phase;
        }
    }
    return best;
}

// Finds the cheapest ways from the window's start to the positions up to end.
void OptimalParser::parse_window(std::uint32_t end) {
    for (std::uint32_t position = start_; position < end;) {
        const std::uint32_t cheapest = cheapest_phase(position);
        const std::uint32_t too_much = state(position, cheapest).cost + kHopeless;
        std::uint32_t low_water_mark = kNone;
        for (std::uint32_t phase = 0; phase < num_phases_; ++phase) {
            State& at = state(position, phase);
            at.cost = at.cost < too_much ? at.cost : kNone;
            low_water_mark =
                std::min(low_water_mark, at.cost == kNone ? kNone : at.high_water_mark);
        }
        find_candidates(position, low_water_mark);
        std::uint32_t taken = 0;
        for (std::uint32_t phase = 0; phase < num_phases_; ++phase) {
            if (state(position, phase).cost != kNone) {
                extend_by_literal(position, phase);
                const std::uint32_t length = extend_by_match(position, phase);
                taken = phase == cheapest ? length : taken;
            }
        }
        // Inside a long match there is little to gain.
        const bool jumps =
            taken >= static_cast<std::uint32_t>(effort_.nice_length) && position + taken <= end;
        position += jumps ? taken : 1;
    }
}

// Writes the sequences of the cheapest way to end, and begins the next window there.
void OptimalParser::emit(std::uint32_t end, std::vector<Sequence>& sequences) {
    std::uint32_t phase = cheapest_phase(end);
    const State last = state(end, phase);
    const std::uint32_t last_phase = phase;
    path_.clear();
    for (std::uint32_t position = end; position > start_;) {
        const State& at = state(position, phase);
        path_.push_back(&at);
        phase = ends_sequence(at) ? (phase + num_phases_ - 1) % num_phases_ : phase;
        position -= std::max<std::uint32_t>(at.match_length, 1);
    }
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
        const State& at = **step;
        if (ends_sequence(at)) {
            sequences.push_back({num_literals_, at.match_length, at.match_offset});
            num_literals_ = 0;
        }
        num_literals_ += at.match_length == 0;
    }
    start_ = end;
    std::fill(states_.begin(), states_.end(), kUnreached);
    state(start_, last_phase) = last;
    state(start_, last_phase).cost = 0;
}

void OptimalParser::parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                          std::vector<Sequence>& sequences) {
    bytes_ = content.data();
    size_ = static_cast<std::uint32_t>(content.size());
    limits_ = limits;
    effort_ = effort;
    num_phases_ = limits.dependency_elimination ? 1u << limits.group_size_log2 : 1;
    start_ = inserted_ = num_literals_ = run_period_ = 0;
    narrow_.reset(size_);
    wide_.reset(size_);
    states_.assign((kWindow + limits.max_match_length + 1) * kMaxPhases, kUnreached);
    // Without dependency elimination, every byte below a position may be copied from there.
    state(0, 0) = {0, limits.dependency_elimination ? 0 : kNone, 0, 0, 0, false};
    sequences.clear();
    while (start_ < size_) {
        const std::uint32_t end = std::min(start_ + kWindow, size_);
        parse_window(end);
        emit(end, sequences);
    }
    if (num_literals_ != 0) {
        sequences.push_back({num_literals_, 0, 0});
    }
}

}  // namespace

void parse_block_optimally(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                           std::vector<Sequence>& sequences) {
    // By pointer: in a shared library, each access to a thread_local object itself is a call.
    thread_local const auto parser = std::make_unique<OptimalParser>();
    parser->parse(content, limits, effort, sequences);
}

}  // namespace gompfs

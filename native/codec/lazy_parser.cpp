// A lazy parser over hash chains, which obeys dependency elimination by construction.
//
// Algorithm
//
// As in zlib, the hash of the 4 bytes at a position leads to a chain of earlier positions with the
// same hash. At each position the parser checks up to chain_length candidates and computes the gain
// of each: the estimated cost of the bytes as literals, minus the cost of the match. It takes the
// best match, unless a match at one of the next positions gains more (lazy evaluation). A table of
// 3-byte hashes finds short near matches, and the last match offset is tried first, since repeating
// it is cheap.
//
// Dependency elimination
//
// Positions enter the hash chains only when a match may copy from them: when their group is
// finished (their output then lies below the next high-water mark), or, inside the open group, when
// four literals in a row begin there. So the chains contain no candidate that the rule forbids. The
// length of a candidate is clipped only if it runs past the high-water mark into bytes that are not
// literals (allowed_length).
#include "codec/lazy_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>

#include "codec/match_length.h"
#include "common/cancellation.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::uint32_t kNone = ~0u;
constexpr int kCostOne = 16;  // costs are in 1/16 bit
// A fast search steps one position farther for each so many positions without a match.
constexpr std::uint32_t kMissesToSkip = 16;
constexpr std::uint32_t kMaxLazySteps = 2;
// The extra gain by which a match must beat the previous one, per literal before it.
constexpr int kLazyBias = 20;

struct Match {
    std::uint32_t length = 0;
    std::uint32_t offset = 0;
    int gain = 0;  // cost saved compared with literals
};

class LazyParser {
  public:
    void parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
               std::vector<Sequence>& sequences);

  private:
    void start(Bytes content);
    void estimate_literal_costs();
    void insert(std::uint32_t position);
    void insert_group(std::uint32_t end);
    void pass_literal(std::uint32_t position);
    void emit(std::uint32_t position, const Match& match, std::vector<Sequence>& sequences);
    void push(const Sequence& sequence, std::uint32_t end, std::vector<Sequence>& sequences);
    Match find(std::uint32_t position);
    Match find_after_literals(std::uint32_t position, std::uint32_t num_literals);
    void consider(std::uint32_t position, std::uint32_t candidate, std::uint32_t limit, bool repeat,
                  Match& best) const;
    std::uint32_t allowed_length(std::uint32_t candidate, std::uint32_t length) const;
    int match_cost(std::uint32_t offset, std::uint32_t length, bool repeat) const;

    const std::uint8_t* bytes_ = nullptr;
    std::uint32_t size_ = 0;
    ParserLimits limits_{};
    SearchEffort effort_{};
    std::uint32_t anchor_ = 0;           // start of the literals that belong to no sequence yet
    std::uint32_t high_water_mark_ = 0;  // output below it is final for the open group
    // Without dependency elimination: all positions below are in the chains.
    std::uint32_t inserted_ = 0;
    // Match offset of the row's latest match; 0 if the row has none yet.
    std::uint32_t last_offset_ = 0;
    std::uint32_t num_sequences_ = 0;
    std::vector<std::uint32_t> head_;
    std::vector<std::uint32_t> head3_;
    std::vector<std::uint32_t> previous_;
    std::vector<std::uint8_t> literal_;    // per position: whether it is a literal of a sequence
    std::vector<std::uint8_t> in_chains_;  // per position: whether it is in the chains
    std::vector<std::uint32_t> literal_cost_;  // prefix sums of the literals' costs
};

void LazyParser::start(Bytes content) {
    bytes_ = content.data();
    size_ = static_cast<std::uint32_t>(content.size());
    anchor_ = high_water_mark_ = inserted_ = last_offset_ = num_sequences_ = 0;
    head_.assign(std::size_t{1} << kHashBits, kNone);
    head3_.assign(std::size_t{1} << kHashBits, kNone);
    previous_.resize(size_);
    literal_.assign(size_, 0);
    in_chains_.assign(size_, 0);
    estimate_literal_costs();
}

// Estimates the costs of literals from the byte frequencies of the block. The costs are flattened,
// because rare bytes are more likely to be literals.
void LazyParser::estimate_literal_costs() {
    std::array<int, 256> costs;
    if (limits_.entropy_coded) {
        std::array<std::uint32_t, 256> counts{};
        for (std::uint32_t position = 0; position < size_; ++position) {
            ++counts[bytes_[position]];
        }
        for (int symbol = 0; symbol < 256; ++symbol) {
            const double share = (counts[symbol] + 1.0) / (size_ + 256.0);
            costs[symbol] =
                static_cast<int>(kCostOne * std::clamp(1.2 - std::log2(share) * 0.9, 2.0, 11.0));
        }
    } else {
        costs.fill(8 * kCostOne);
    }
    literal_cost_.resize(size_ + 1);
    std::uint32_t sum = 0;
    for (std::uint32_t position = 0; position < size_; ++position) {
        literal_cost_[position] = sum;
        sum += static_cast<std::uint32_t>(costs[bytes_[position]]);
    }
    literal_cost_[size_] = sum;
}

int LazyParser::match_cost(std::uint32_t offset, std::uint32_t length, bool repeat) const {
    if (!limits_.entropy_coded) {
        return kCostOne * (length >= kByteMatchEscape + kByteMinMatchLength - 1 ? 32 : 24);
    }
    const int length_bits = length < 19 ? 0 : std::bit_width(length) - 3;
    const int offset_bits = repeat ? 2 : 2 + std::bit_width(offset);
    return kCostOne * (5 + length_bits + offset_bits);
}

void LazyParser::insert(std::uint32_t position) {
    std::uint32_t& head = head_[hash4(bytes_ + position)];
    previous_[position] = head;
    head = position;
    head3_[hash3(bytes_ + position)] = position;
}

void LazyParser::insert_group(std::uint32_t end) {
    const std::uint32_t last = std::min(end, size_ >= 4 ? size_ - 3 : 0);
    for (; inserted_ < last; ++inserted_) {
        if (!in_chains_[inserted_]) {
            insert(inserted_);
        }
    }
    inserted_ = std::max(inserted_, std::min(end, size_));
}

// Makes the byte at `position` a literal. With dependency elimination, four literals in a row can
// be copied from at once.
void LazyParser::pass_literal(std::uint32_t position) {
    literal_[position] = 1;
    if (limits_.dependency_elimination && position >= 3 &&
        position - 3 >= std::max(anchor_, high_water_mark_)) {
        in_chains_[position - 3] = 1;
        insert(position - 3);
    }
}

// The length that a match of `length` bytes starting at `candidate` may have under the rule.
std::uint32_t LazyParser::allowed_length(std::uint32_t candidate, std::uint32_t length) const {
    if (!limits_.dependency_elimination || candidate + length <= high_water_mark_) {
        return length;
    }
    std::uint32_t allowed = candidate < high_water_mark_ ? high_water_mark_ - candidate : 0;
    while (allowed < length && literal_[candidate + allowed]) {
        ++allowed;
    }
    return allowed;
}

void LazyParser::consider(std::uint32_t position, std::uint32_t candidate, std::uint32_t limit,
                          bool repeat, Match& best) const {
    std::uint32_t length = common_length(bytes_ + candidate, bytes_ + position, limit);
    if (length < limits_.min_match_length) {
        return;
    }
    length = allowed_length(candidate, length);
    if (length < limits_.min_match_length) {
        return;
    }
    const std::uint32_t offset = position - candidate;
    const int saved = static_cast<int>(literal_cost_[position + length] - literal_cost_[position]);
    const int gain = saved - match_cost(offset, length, repeat);
    if (gain > best.gain) {
        best = {length, offset, gain};
    }
}

Match LazyParser::find(std::uint32_t position) {
    Match best;
    const std::uint32_t limit = std::min(size_ - position, limits_.max_match_length);
    if (limit < 4) {
        return best;
    }
    if (!limits_.dependency_elimination) {
        insert_group(position);
    }
    if (limits_.entropy_coded && last_offset_ != 0 && last_offset_ <= position) {
        consider(position, position - last_offset_, limit, true, best);
    }
    const std::uint32_t near =
        limits_.min_match_length > 3 || effort_.skips ? kNone : head3_[hash3(bytes_ + position)];
    if (near != kNone && position - near <= limits_.max_match_offset) {
        consider(position, near, limit, false, best);
    }
    std::uint32_t candidate = head_[hash4(bytes_ + position)];
    const std::uint32_t nice = std::min(limit, static_cast<std::uint32_t>(effort_.nice_length));
    for (int step = effort_.chain_length; step > 0 && candidate != kNone && best.length < nice;
         --step) {
        const bool worth = best.length < 4 || best.length >= limit ||
                           load<std::uint32_t>(bytes_ + candidate + best.length - 3) ==
                               load<std::uint32_t>(bytes_ + position + best.length - 3);
        if (worth && position - candidate <= limits_.max_match_offset) {
            consider(position, candidate, limit, false, best);
        }
        candidate = previous_[candidate];
    }
    return best;
}

// The result of find() if the bytes from `position` on become num_literals literals first.
Match LazyParser::find_after_literals(std::uint32_t position, std::uint32_t num_literals) {
    std::array<std::uint8_t, kMaxLazySteps> before;
    std::copy_n(literal_.begin() + position, num_literals, before.begin());
    std::fill_n(literal_.begin() + position, num_literals, 1);
    const Match match = find(position + num_literals);
    std::copy_n(before.begin(), num_literals, literal_.begin() + position);
    return match;
}

void LazyParser::push(const Sequence& sequence, std::uint32_t end,
                      std::vector<Sequence>& sequences) {
    sequences.push_back(sequence);
    if (sequence.match_length != 0) {
        last_offset_ = sequence.match_offset;
    }
    if (++num_sequences_ % kNumSubBlocks == 0) {
        last_offset_ = 0;
    }
    if (limits_.dependency_elimination && num_sequences_ % (1u << limits_.group_size_log2) == 0) {
        high_water_mark_ = end;
        insert_group(end);
    }
}

// Emits the literals from anchor_ to `position`, then the match. A literal string too long for one
// sequence takes several.
void LazyParser::emit(std::uint32_t position, const Match& match,
                      std::vector<Sequence>& sequences) {
    while (position - anchor_ > limits_.max_literal_length) {
        anchor_ += limits_.max_literal_length;
        push({limits_.max_literal_length, 0, 0}, anchor_, sequences);
    }
    const std::uint32_t literal_length = position - anchor_;
    anchor_ = position + match.length;
    push({literal_length, match.length, match.offset}, anchor_, sequences);
}

// Takes the match at a position, unless one of the next few positions has a better one. That one is
// then taken, unless one of the positions after it has a better one again.
void LazyParser::parse(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                       std::vector<Sequence>& sequences) {
    limits_ = limits;
    effort_ = effort;
    start(content);
    sequences.clear();
    std::uint32_t position = 0;
    std::uint32_t num_misses = 0;  // number of positions in a row without a match
    CancellationPoint point;
    while (position < size_) {
        point();
        Match match = find(position);
        if (match.length == 0) {
            ++num_misses;
            const std::uint32_t num_skipped = effort_.skips ? num_misses / kMissesToSkip : 0;
            for (const std::uint32_t end = std::min(position + 1 + num_skipped, size_);
                 position < end;) {
                pass_literal(position++);
            }
            continue;
        }
        num_misses = 0;
        for (std::uint32_t step = 1; step <= effort_.lazy_steps && position + step < size_;
             ++step) {
            if (match.length >= static_cast<std::uint32_t>(effort_.nice_length)) {
                break;
            }
            const Match next = find_after_literals(position, step);
            if (next.gain > match.gain + kLazyBias * static_cast<int>(step)) {
                for (; step > 0; --step) {
                    pass_literal(position++);
                }
                match = next;
            }
        }
        emit(position, match, sequences);
        position = anchor_;
    }
    if (anchor_ < size_) {
        emit(size_, {}, sequences);
    }
}

}  // namespace

void parse_block_lazily(Bytes content, const ParserLimits& limits, const SearchEffort& effort,
                        std::vector<Sequence>& sequences) {
    // A pointer: in a shared library each access to a thread_local object is a function call.
    thread_local const auto parser = std::make_unique<LazyParser>();
    parser->parse(content, limits, effort, sequences);
}

}  // namespace gompfs

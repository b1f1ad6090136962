// Walks over the symbols of blocks; see part_lines.h.
#include "search/grammar/part_lines.h"

#include <algorithm>

#include "common/copy.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kAtOnce = 16;

// What symbols come to together.
struct Sums {
    Facts all = 0, adjacent = 0;
    std::uint32_t size = 0;

    void add(const Facts* symbol) {
        const Facts before = symbol[-1];
        all |= *symbol;
        adjacent |= facts::is_adjacent(before, *symbol);
        size += (*symbol & facts::kSize) - facts::takes_space(before, *symbol) / facts::kSeparator;
    }
};

// Goes over symbols without these facts, some at a time. Returns how many there were; there may be
// more of them.
GOMPFS_TARGET_CLONES std::size_t pass_many(const Facts* symbols, std::size_t count, Facts stopping,
                                           std::uint64_t& size, Facts& adjacent) {
    std::size_t at = 0;
    std::uint64_t total = 0;
    for (; at + kAtOnce <= count; at += kAtOnce) {
        Sums sums;
        for (std::size_t index = 0; index < kAtOnce; ++index) {
            sums.add(symbols + at + index);
        }
        if ((sums.all & stopping) != 0) {
            break;
        }
        total += sums.size;
        adjacent |= sums.adjacent;
    }
    size += total;
    return at;
}

}  // namespace

void PartLines::begin(State state) {
    walk_ = {state};
    size_ = position_ = piece_begin_ = last_begin_ = 0;
    ends_with_file_ = true;
    has_adjacent_ = false;
    pieces_.clear();
}

bool PartLines::read(Bytes payload, std::uint32_t uncompressed_size) {
    // A symbol that is no splitter has a byte or more in the block, and no piece is empty.
    const std::size_t max_ranks = 2 * std::size_t{uncompressed_size} + 1;
    if (!block_.read(payload, effects_.rank_code(), effects_.num_symbols(), max_ranks)) {
        return false;
    }
    set_facts();
    const std::size_t first = block_.skip == 0 ? 0 : 1;
    if (!begin_block(size_) || !read_symbols(first)) {
        return false;
    }
    size_ += uncompressed_size;
    return !has_adjacent_;
}

void PartLines::set_facts() {
    const std::size_t count = block_.ranks.size();
    if (facts_.size() < count + 1) {
        facts_.resize(count + 1);
    }
    const Facts* const by_rank = effects_.facts();
    facts_[0] = walk_.before;
    for (std::size_t index = 0; index < count; ++index) {
        facts_[index + 1] = by_rank[block_.ranks[index]];
    }
}

// Whether the first symbol continues what was read so far.
bool PartLines::begin_block(std::uint64_t block_begin) {
    const std::uint32_t first = block_.ranks[0];
    if (block_.skip >= (facts()[0] & facts::kSize)) {
        return false;
    }
    const bool takes_space = facts::takes_space(facts()[-1], facts()[0]) != 0;
    return block_.skip == 0
               ? position_ - (takes_space ? 1 : 0) == block_begin
               : !ends_with_file_ && first == last_ && last_begin_ + block_.skip == block_begin;
}

// Facts of symbols that have to be looked at in the state.
Facts PartLines::stopping_facts() const {
    constexpr Facts kAny = facts::kSeparator | facts::kWord | facts::kBorder | facts::kSize;
    switch (walk_.state) {
        case LineAutomaton::kStart:
            return facts::kSplitter |
                   (automaton_.after_space[LineAutomaton::kStart] == LineAutomaton::kStart
                        ? facts::kBusy
                        : kAny);
        case LineAutomaton::kMatched:
            return facts::kSplitter | facts::kEndsLine;
        case LineAutomaton::kUndecided:
            return facts::kSplitter;
        default:
            return kAny;
    }
}

// Goes over symbols that need not be looked at. Returns the index after them.
std::size_t PartLines::pass_idle(std::size_t at) {
    const Facts stopping = stopping_facts();
    const std::size_t count = block_.ranks.size(), first = at;
    if (at == count || (facts()[at] & stopping) != 0) {
        return at;
    }
    Facts adjacent = 0;
    at += pass_many(facts() + at, count - at, stopping, position_, adjacent);
    Sums sums;
    for (; at < count && (facts()[at] & stopping) == 0; ++at) {
        sums.add(facts() + at);
    }
    position_ += sums.size;
    has_adjacent_ = has_adjacent_ || (adjacent | sums.adjacent) != 0;
    if (at != first) {
        walk_.before = facts()[at - 1];
        ends_with_file_ = false;
    }
    return at;
}

bool PartLines::read_symbols(std::size_t at) {
    const std::size_t count = block_.ranks.size();
    while ((at = pass_idle(at)) < count) {
        Sums sums;
        sums.add(facts() + at);
        position_ += sums.size;
        if ((sums.all & facts::kSplitter) != 0) {
            if (!end_piece()) {
                return false;
            }
        } else {
            has_adjacent_ = has_adjacent_ || sums.adjacent != 0;
            ends_with_file_ = false;
            if (!effects_.step(walk_, block_.ranks[at])) {
                return false;
            }
        }
        ++at;
    }
    last_ = block_.ranks[count - 1];
    last_begin_ = position_ - (facts()[count - 1] & facts::kSize);
    return true;
}

// Ends a piece at a splitter. Returns false if it has no bytes.
bool PartLines::end_piece() {
    const LineAutomaton::LineEnd end = automaton_.at_end_of_file(walk_.state);
    const bool is_undecided = end == LineAutomaton::LineEnd::unsure;
    const std::uint32_t last = end == LineAutomaton::LineEnd::match ? 1 : 0;
    pieces_.push_back(
        {static_cast<std::uint32_t>(piece_begin_), walk_.num_lines + last, is_undecided ? 1u : 0u});
    const bool has_bytes = position_ != piece_begin_;
    piece_begin_ = position_;
    walk_ = {automaton_.line_start};
    ends_with_file_ = true;
    return has_bytes;
}

bool PartLines::finish() {
    if (position_ != size_) {
        return false;
    }
    if (!ends_with_file_) {
        if ((walk_.before & facts::kWord) != 0) {
            walk_.state = automaton_.after_space[walk_.state];
        }
        pieces_.push_back({static_cast<std::uint32_t>(piece_begin_), walk_.num_lines,
                           walk_.state == LineAutomaton::kUndecided ? 1u : 0u});
    }
    return true;
}

}  // namespace gompfs::search

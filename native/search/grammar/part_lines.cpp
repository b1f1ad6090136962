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

// Adds the sizes of symbols up to the first splitter. Returns its index, or the number of symbols.
GOMPFS_TARGET_CLONES std::size_t add_sizes(const Facts* symbols, std::size_t count,
                                           std::uint64_t& size, Facts& adjacent) {
    std::size_t at = 0;
    std::uint64_t total = 0;
    for (; at + kAtOnce <= count; at += kAtOnce) {
        Sums sums;
        for (std::size_t index = 0; index < kAtOnce; ++index) {
            sums.add(symbols + at + index);
        }
        if ((sums.all & facts::kSplitter) != 0) {
            break;
        }
        total += sums.size;
        adjacent |= sums.adjacent;
    }
    Sums sums;
    for (; at < count && (symbols[at] & facts::kSplitter) == 0; ++at) {
        sums.add(symbols + at);
    }
    total += sums.size;
    adjacent |= sums.adjacent;
    size += total;
    return at;
}

// The index of the first symbol that has some of these facts, or the number of symbols.
GOMPFS_TARGET_CLONES std::size_t find_facts(const Facts* symbols, std::size_t count, Facts wanted) {
    std::size_t at = 0;
    for (; at + kAtOnce <= count; at += kAtOnce) {
        Facts all = 0;
        for (std::size_t index = 0; index < kAtOnce; ++index) {
            all |= symbols[at + index];
        }
        if ((all & wanted) != 0) {
            break;
        }
    }
    while (at < count && (symbols[at] & wanted) == 0) {
        ++at;
    }
    return at;
}

}  // namespace

void PartLines::begin(State state) {
    walk_ = {state};
    size_ = position_ = piece_begin_ = last_begin_ = 0;
    ends_with_file_ = true;
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
    if (!begin_block(size_) || !measure(first) || !read_symbols(first)) {
        return false;
    }
    size_ += uncompressed_size;
    return true;
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

// Finds where the pieces end. Returns false if one has no bytes, or separators are adjacent.
bool PartLines::measure(std::size_t first) {
    const std::size_t count = block_.ranks.size();
    Facts adjacent = 0;
    ends_.clear();
    std::size_t at = first;
    for (;;) {
        at += add_sizes(facts() + at, count - at, position_, adjacent);
        if (at == count) {
            break;
        }
        position_ -= facts::takes_space(facts()[at - 1], facts()[at]) / facts::kSeparator;
        if (position_ == (ends_.empty() ? piece_begin_ : ends_.back())) {
            return false;
        }
        ends_.push_back(position_);
        ++at;
    }
    last_ = block_.ranks[count - 1];
    last_begin_ = position_ - (facts()[count - 1] & facts::kSize);
    return adjacent == 0;
}

// The index of the next symbol that has to be looked at.
std::size_t PartLines::pass_idle(std::size_t at) {
    constexpr std::size_t kNear = 8;
    const Facts stopping = stopping_facts();
    const std::size_t count = block_.ranks.size(), first = at;
    for (const std::size_t near = std::min(at + kNear, count); at < near; ++at) {
        if ((facts()[at] & stopping) != 0) {
            break;
        }
    }
    if (at == first + kNear) {
        at += find_facts(facts() + at, count - at, stopping);
    }
    if (at != first) {
        walk_.before = facts()[at - 1];
    }
    return at;
}

bool PartLines::read_symbols(std::size_t at) {
    const std::size_t count = block_.ranks.size();
    std::size_t num_ended = 0;
    while ((at = pass_idle(at)) < count) {
        if ((facts()[at] & facts::kSplitter) != 0) {
            end_piece(ends_[num_ended++]);
        } else if (!effects_.step(walk_, block_.ranks[at])) {
            return false;
        }
        ++at;
    }
    ends_with_file_ = (facts()[count - 1] & facts::kSplitter) != 0;
    return true;
}

// Ends a piece at a splitter.
void PartLines::end_piece(std::uint64_t position) {
    const LineAutomaton::LineEnd end = automaton_.at_end_of_file(walk_.state);
    add_piece(walk_.num_lines + (end == LineAutomaton::LineEnd::match ? 1 : 0),
              end == LineAutomaton::LineEnd::unsure);
    piece_begin_ = position;
    walk_ = {automaton_.line_start};
}

void PartLines::add_piece(std::uint32_t num_lines, bool is_undecided) {
    pieces_.push_back({static_cast<std::uint32_t>(piece_begin_), num_lines, is_undecided});
}

bool PartLines::finish() {
    if (position_ != size_) {
        return false;
    }
    if (!ends_with_file_) {
        if ((walk_.before & facts::kWord) != 0) {
            walk_.state = automaton_.after_space[walk_.state];
        }
        add_piece(walk_.num_lines, walk_.state == LineAutomaton::kUndecided);
    }
    return true;
}

}  // namespace gompfs::search

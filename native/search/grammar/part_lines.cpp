// Walks over the symbols of blocks; see part_lines.h.
#include "search/grammar/part_lines.h"

#include <algorithm>

namespace gompfs::search {

void PartLines::begin(State state, LineWindows* windows) {
    walk_ = {state};
    windows_ = windows;
    if (windows != nullptr) {
        windows->begin();
    }
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
    first_ = block_.skip == 0 ? 0 : 1;
    if (!begin_block(size_) || !measure() || !read_symbols()) {
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
bool PartLines::measure() {
    const std::size_t count = block_.ranks.size();
    Facts adjacent = 0;
    ends_.clear();
    std::size_t at = first_;
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

bool PartLines::read_symbols() {
    const std::size_t count = block_.ranks.size();
    if (windows_ != nullptr) {
        windows_->begin_block(block_.ranks.subspan(first_), facts() + first_);
    }
    std::size_t num_ended = 0;
    for (std::size_t at = first_; (at = pass_idle(at)) < count; ++at) {
        const bool is_splitter = (facts()[at] & facts::kSplitter) != 0;
        if (!(is_splitter ? end_piece(at, ends_[num_ended++]) : step(at))) {
            return false;
        }
    }
    ends_with_file_ = (facts()[count - 1] & facts::kSplitter) != 0;
    return windows_ == nullptr || windows_->end_block();
}

bool PartLines::step(std::size_t at) {
    const std::uint32_t num_lines = walk_.num_lines;
    return effects_.step(walk_, block_.ranks[at]) &&
           (windows_ == nullptr || walk_.num_lines == num_lines ||
            windows_->add_lines(at - first_));
}

// Ends a piece at a splitter.
bool PartLines::end_piece(std::size_t at, std::uint64_t position) {
    const LineAutomaton::LineEnd end = automaton_.at_end_of_file(walk_.state);
    const bool is_undecided = end == LineAutomaton::LineEnd::unsure;
    const bool has_last = end == LineAutomaton::LineEnd::match;
    add_piece(walk_.num_lines + (has_last ? 1 : 0), is_undecided);
    piece_begin_ = position;
    walk_ = {automaton_.line_start};
    return windows_ == nullptr ||
           windows_->end_piece(at - first_, position, has_last, !is_undecided);
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

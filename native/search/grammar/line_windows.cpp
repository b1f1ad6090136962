// Expands the lines that match; see line_windows.h.
#include "search/grammar/line_windows.h"

#include <algorithm>
#include <utility>

#include "common/copy.h"

namespace gompfs::search {
namespace {

// Where more than a part of the text matches, decoding all of it takes less time.
constexpr std::size_t kFreeText = 4 << 10, kMaxShare = 64;
constexpr std::size_t kMaxText = 4 << 20, kMaxPieces = 1 << 20;
constexpr std::size_t kMaxLineSymbols = 1 << 18;  // that are kept from one block to the next
constexpr std::uint8_t kFirstOfMark = 0xef;       // of the byte order mark of UTF-8

}  // namespace

void LineWindows::Text::append(Bytes more) {
    if (bytes.size() < size + more.size() + kChunkSize) {
        bytes.resize(2 * (size + more.size() + kChunkSize));
    }
    copy_chunks(&bytes[size], more.data(), more.size());
    size += more.size();
}

void LineWindows::begin() {
    found_ = {};
    text_.size = 0;
    is_dense_ = false;
    is_first_block_ = true;
    ranks_.clear();
    facts_.assign(1, facts::kSplitter | facts::kBorder);
    piece_ = counted_to_ = 0;
    position_ = num_line_feeds_ = windows_end_ = 0;
    found_.pieces.push_back({0, 0, true});
    is_piece_begun_ = false;
}

bool LineWindows::add_lines(std::size_t index) { return add(block_ + index, block_ + index + 1); }

void LineWindows::begin_block(std::span<const std::uint32_t> ranks, const Facts* facts) {
    block_ = ranks_.size();
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
    facts_.insert(facts_.end(), facts, facts + ranks.size());
    if (!is_piece_begun_ && !ranks.empty()) {
        begin_piece(block_);
    }
    if (std::exchange(is_first_block_, false)) {
        find_head();
    }
}

// A file that may begin with a byte order mark is decoded: the mark is not part of its text.
void LineWindows::begin_piece(std::size_t index) {
    is_piece_begun_ = true;
    if ((fact(index) & facts::kSplitter) == 0 &&
        effects_.first_byte(ranks_[index]) == kFirstOfMark) {
        found_.pieces.back().is_decided = false;
    }
}

void LineWindows::find_head() {
    const std::size_t end =
        find_facts(&facts_[1], ranks_.size(), facts::kSplitter | facts::kLineFeed);
    if (end == ranks_.size()) {
        return;
    }
    line_.size = 0;
    const bool is_line = (fact(end) & facts::kSplitter) == 0;
    if (expand(0, is_line ? end + 1 : end, line_)) {
        const std::string_view text = line_.view();
        found_.head = is_line ? text.substr(0, text.find('\n') + 1) : text;
    }
}

// The index after the last symbol before `index` that has a line feed; or where the piece begins.
std::size_t LineWindows::line_begin(std::size_t index) const {
    while (index != piece_ && (fact(index - 1) & facts::kLineFeed) == 0) {
        --index;
    }
    return index;
}

// Adds up sizes and line feeds up to a symbol.
void LineWindows::count_to(std::size_t index) {
    if (index <= counted_to_) {
        return;
    }
    Facts adjacent = 0;
    add_sizes(&facts_[counted_to_ + 1], index - counted_to_, position_, adjacent);
    if (counts_line_feeds_) {
        const std::uint16_t* const line_feeds = effects_.line_feeds();
        for (std::size_t at = counted_to_; at < index; ++at) {
            num_line_feeds_ += line_feeds[ranks_[at]];
        }
    }
    counted_to_ = index;
}

// Appends the text of symbols, of which none is a splitter. Returns false if it is too much.
bool LineWindows::expand(std::size_t first, std::size_t end, Text& text) {
    for (std::size_t index = first; index < end; ++index) {
        text.append(effects_.text_of(ranks_[index]));
        if (index + 1 < ranks_.size() && facts::takes_space(fact(index), fact(index + 1)) != 0) {
            --text.size;
        }
        if (text.size > kMaxText) {
            return false;
        }
    }
    return true;
}

// Appends the text from the last line feed before the symbol `index` on, up to `end`. Returns
// nothing if it is too much.
std::optional<LineWindows::Start> LineWindows::expand_line(std::size_t index, std::size_t end,
                                                           Text& text) {
    const std::size_t first = line_begin(index), before = first == piece_ ? first : first - 1;
    const std::size_t text_begin = text.size;
    count_to(before);
    std::uint64_t position =
        position_ - facts::takes_space(facts_[before], fact(before)) / facts::kSeparator;
    if (before != first) {
        expand(before, first, text);
        const std::string_view added = text.view().substr(text_begin);
        const std::size_t after = added.rfind('\n') + 1;
        position += after;
        std::copy(added.begin() + static_cast<std::ptrdiff_t>(after), added.end(),
                  &text.bytes[text_begin]);
        text.size -= after;
    }
    count_to(first);
    return expand(first, end, text) ? std::optional(Start{position, num_line_feeds_})
                                    : std::nullopt;
}

// Adds a window of the lines that end in the symbol before `end`; or if `index` is `end`, of the
// last line of the piece, which ends there without a line feed.
bool LineWindows::add(std::size_t index, std::size_t end) {
    const std::size_t text_begin = text_.size;
    const auto start = expand_line(index, end, text_);
    if (!start) {
        return false;
    }
    if (index != end) {
        text_.size = text_begin + text_.view().substr(text_begin).rfind('\n') + 1;
    }
    const bool has_windows = found_.windows.size() != found_.pieces.back().first_window;
    if (!has_windows || windows_end_ != start->position) {
        found_.windows.push_back({static_cast<std::uint32_t>(text_begin),
                                  static_cast<std::uint32_t>(start->position),
                                  static_cast<std::uint32_t>(start->num_line_feeds)});
    }
    windows_end_ = start->position + (text_.size - text_begin);
    const std::size_t size = text_.size + found_.windows.size() * sizeof(PartWindows::Window);
    is_dense_ = size > kFreeText + start->position / kMaxShare;
    return !is_dense_;
}

bool LineWindows::end_piece(std::size_t index, std::uint64_t end, bool has_last, bool is_decided) {
    index += block_;
    if (found_.pieces.size() == kMaxPieces || (has_last && !add(index, index))) {
        return false;
    }
    end_windows(is_decided);
    found_.pieces.push_back(
        {static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(found_.windows.size()), true});
    piece_ = counted_to_ = index + 1;
    position_ = end;
    num_line_feeds_ = 0;
    is_piece_begun_ = false;
    if (piece_ != ranks_.size()) {
        begin_piece(piece_);
    }
    return true;
}

// Drops the windows of the piece if they are not known to be all.
void LineWindows::end_windows(bool is_decided) {
    PartWindows::Piece& piece = found_.pieces.back();
    piece.is_decided = piece.is_decided && is_decided;
    if (!piece.is_decided && found_.windows.size() != piece.first_window) {
        text_.size = found_.windows[piece.first_window].text_begin;
        found_.windows.resize(piece.first_window);
    }
}

bool LineWindows::end_block() {
    const std::size_t first = line_begin(ranks_.size());
    const std::size_t kept = first == piece_ ? first : first - 1;
    count_to(kept);
    const auto drop = [kept](auto& items) {
        items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(kept));
    };
    drop(ranks_);
    drop(facts_);
    counted_to_ -= kept;
    piece_ = 0;
    return ranks_.size() <= kMaxLineSymbols;
}

std::optional<PartWindows> LineWindows::finish(std::uint64_t size, bool ends_with_file,
                                               bool is_decided) {
    found_.size = size;
    found_.ends_with_file = ends_with_file;
    if (ends_with_file) {
        found_.pieces.pop_back();
        found_.text = text_.view();
        return std::move(found_);
    }
    end_windows(is_decided);
    line_.size = 0;
    const auto tail = expand_line(ranks_.size(), ranks_.size(), line_);
    if (!tail) {
        return std::nullopt;
    }
    found_.text = text_.view();
    found_.tail = line_.view();
    found_.tail_position = static_cast<std::uint32_t>(tail->position);
    found_.num_line_feeds_before_tail = static_cast<std::uint32_t>(tail->num_line_feeds);
    return std::move(found_);
}

}  // namespace gompfs::search

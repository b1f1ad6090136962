// Searches a large file piece by piece; see large_file_search.h.
#include "search/large_file_search.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/cancellation.h"
#include "common/failures.h"
#include "search/match/line_ranges.h"

namespace gompfs::search {
namespace {

// A piece is in the cache of its processor from when it is read until it was searched.
constexpr std::uint64_t kPieceSize = 512 << 10;
constexpr std::size_t kMaxLine = 1 << 30;
constexpr std::size_t kMaxOld = 1 << 20;              // of text that was searched, in text_
constexpr std::size_t kSearchedTogether = 256 << 10;  // their ranges may take 16 times as much

MutableBytes as_bytes(char* memory, std::size_t size) {
    return {reinterpret_cast<std::uint8_t*>(memory), size};
}

std::size_t end_of_last_line(std::string_view text) {
    const std::size_t newline = text.rfind('\n');
    return newline == text.npos ? 0 : newline + 1;
}

}  // namespace

LargeFileSearch::LargeFileSearch(const SearchOptions& options, const Matcher& matcher,
                                 LineSink& sink, PieceMemory& memory, File file, Read read)
    : options_(options),
      matcher_(matcher),
      memory_(memory),
      file_(std::move(file)),
      read_(std::move(read)),
      walker_(options, sink, file_.path, file_.meaning == NulMeaning::ends_output),
      num_wanted_(walker_.num_wanted()),
      has_holes_(has_holes(file_.layout)),
      piece_size_(std::max(kPieceSize, file_.block_size)),
      session_(matcher),
      session_between_(matcher) {
    if (file_.record != nullptr) {
        walker_.record(*file_.record);
    }
    const FileEncoding encoding = options.ignores_byte_order ? FileEncoding() : find_encoding();
    mark_size_ = encoding.mark_size;
    if (encoding.encoding != nullptr) {
        decoder_.emplace(*encoding.encoding);
    }
    const bool skips = file_.scanned && !is_decoded() && can_skip(*file_.scanned);
    looks_for_nul_ = file_.meaning != NulMeaning::none && !skips;
    ranges_ = skips ? file_.scanned->ranges(options.before(), options.after())
                    : std::vector<FileRange>{{0, file_.layout.size, 0}};
    ranges_.front().begin = std::max(ranges_.front().begin, mark_size_);
    next_begin_ = ranges_.front().begin;
    end_offset_ = mark_size_;
}

// Whether nothing but matches and their context is of interest.
bool LargeFileSearch::can_skip(const ScannedFile& scanned) const {
    return !options_.invert_match && (file_.meaning == NulMeaning::none || !scanned.has_nul());
}

// A file that cannot be read there has none: the search will meet the same failure.
FileEncoding LargeFileSearch::find_encoding() const {
    char beginning[kMaxMark] = {};
    const ReadFailure failure = read_(0, as_bytes(beginning, kMaxMark));
    const std::string_view known(beginning, failure ? 0 : kMaxMark);
    return encoding_of_file(known, options_.encoding.get());
}

// Pieces end where blocks do, so that no block is decoded twice.
std::unique_ptr<TextPiece> LargeFileSearch::next_piece() {
    if (has_ended_ || next_range_ == ranges_.size()) {
        return nullptr;
    }
    const FileRange& range = ranges_[next_range_];
    const auto extents = file_.layout.extents;
    const std::uint64_t stream_offset =
        extents.empty() ? 0 : extents.front().stream_offset - extents.front().file_offset;
    const std::uint64_t most = piece_size_ - (stream_offset + next_begin_) % piece_size_;
    auto piece = std::make_unique<TextPiece>();
    piece->begin = next_begin_;
    piece->size = std::min(range.end - next_begin_, most);
    piece->begins_line = next_begin_ == range.begin;
    piece->num_lines_before = piece->begins_line ? range.num_lines_before : 0;
    next_begin_ += piece->size;
    if (next_begin_ == range.end && ++next_range_ != ranges_.size()) {
        next_begin_ = ranges_[next_range_].begin;
    }
    piece->ends_file = piece->begin + piece->size == file_.layout.size;
    piece->is_last = next_range_ == ranges_.size();
    return piece;
}

void LargeFileSearch::search(TextPiece& piece, MatchSession& session) const try {
    if (has_ended_) {
        return;
    }
    piece.memory = memory_.take([this] {
        return std::make_unique<LargeVector<char>>(TextPiece::kSpaceBefore + piece_size_);
    });
    if (has_holes_) {
        std::memset(piece.data(), 0, piece.size);
    }
    piece.failure = read_(piece.begin, as_bytes(piece.data(), piece.size));
    if (piece.failure || is_decoded()) {
        return;
    }
    if (looks_for_nul_) {
        piece.nul = piece.text().find('\0');
    }
    const std::string_view text = piece.text();
    piece.body_end = piece.ends_file ? text.size() : end_of_last_line(text);
    piece.body = piece.begins_line ? 0 : std::min(line_from(text, 0).next, piece.body_end);
    const std::string_view body = text.substr(piece.body, piece.body_end - piece.body);
    session.prepare(body);
    find_ranges(session, false, options_.invert_match, text, piece.body, piece.body_end,
                num_wanted_, piece.ranges);
    if (options_.has_line_numbers()) {
        piece.num_lines = count_newlines(body);
    }
} catch (const Cancelled&) {
    throw;
} catch (...) {
    piece.error = std::current_exception();
}

void LargeFileSearch::take(std::unique_ptr<TextPiece> piece) {
    if (has_ended_) {
        return;
    }
    put_together(*piece);
    memory_.give_back(std::move(piece->memory));
}

// Passes on what was found in a piece, and searches the lines between it and the one before.
void LargeFileSearch::put_together(TextPiece& piece) {
    if (piece.error) {
        std::rethrow_exception(piece.error);
    }
    if (piece.failure) {
        throw ReadFailed{piece.failure};
    }
    if (piece.begin != end_offset_) {
        skip_to(piece);
    }
    end_offset_ = piece.begin + piece.size;
    const Window window = is_decoded() ? add_decoded(piece) : add(piece);
    if (window.complete != 0) {
        search_window(piece, window);
    } else if (text_.size() > kMaxLine) {
        throw SearchError("a line is too long: more than 1 GiB");
    }
    if (piece.is_last && !piece.ends_file) {
        walker_.skip(text_offset_ + num_old_, file_.layout.size - mark_size_, 0);
    }
    const bool ends_at_nul = file_.meaning == NulMeaning::ends_search && nul_offset_;
    if (piece.is_last || ends_at_nul || walker_.is_done()) {
        walker_.finish(ends_at_nul ? nul_offset_ : std::nullopt);
        has_ended_ = true;
    }
}

void LargeFileSearch::search_window(TextPiece& piece, const Window& window) {
    const std::size_t end = find_end(window);
    const bool ends_at_nul = file_.meaning == NulMeaning::ends_search && nul_offset_;
    const bool is_last = piece.ends_file || ends_at_nul;
    const std::size_t body = std::min(window.begin, end), body_end = std::min(window.end, end);
    search_lines(window.text.substr(0, body), num_old_, is_last && body == end);
    if (!walker_.is_done() && body < body_end) {
        const std::size_t shift = window.begin - piece.body;
        for (LineRange& range : piece.ranges) {
            range = {range.begin + shift, range.end + shift};
        }
        std::erase_if(piece.ranges, [&](const LineRange& range) { return range.begin >= end; });
        const auto num_lines =
            body_end == window.end ? std::optional(piece.num_lines) : std::nullopt;
        walk(window.text.substr(0, body_end), body, piece.ranges, is_last && body_end == end,
             num_lines);
    }
    search_lines(window.text.substr(0, end), body_end, is_last);
    keep(window.text, end);
}

// Passes over text between two pieces, and over the line that was not complete before it: nothing
// there is of interest.
void LargeFileSearch::skip_to(const TextPiece& piece) {
    const std::uint64_t to = piece.begin - mark_size_;
    walker_.skip(text_offset_ + num_old_, to, piece.num_lines_before);
    text_.clear();
    num_old_ = 0;
    text_offset_ = to;
}

// Notes a NUL in text that begins at `from`, if there is one.
void LargeFileSearch::note_nul(std::uint64_t from, std::size_t position) {
    if (position != std::string_view::npos && !first_nul_) {
        first_nul_ = from + position;
    }
}

// Puts the text before a piece in front of it; or, if there is too much of it or no line ends in
// the piece, the piece after that text.
LargeFileSearch::Window LargeFileSearch::add(TextPiece& piece) {
    const std::size_t num_before = text_.size();
    const std::size_t size = num_before + piece.size;
    note_nul(text_offset_ + num_before, piece.nul);
    const bool ends = piece.ends_file || (file_.meaning == NulMeaning::ends_search && first_nul_);
    const std::size_t complete = ends                  ? size
                                 : piece.body_end != 0 ? num_before + piece.body_end
                                                       : 0;
    const std::size_t begin = num_before + piece.body, end = num_before + piece.body_end;
    if (complete != 0 && num_before <= TextPiece::kSpaceBefore) {
        char* const text = piece.data() - num_before;
        std::memcpy(text, text_.data(), num_before);
        return {{text, size}, begin, end, complete};
    }
    reserve_text(size);
    text_.append(piece.text());
    return {text_, begin, end, complete};
}

LargeFileSearch::Window LargeFileSearch::add_decoded(const TextPiece& piece) {
    const std::size_t num_before = text_.size();
    reserve_text(num_before + (piece.size + kMaxMark) * TextDecoder::kGrowth);
    decoder_->decode(piece.text(), text_);
    if (piece.ends_file) {
        decoder_->finish(text_);
    }
    if (looks_for_nul_) {
        note_nul(text_offset_, text_.find('\0', num_before));
    }
    const bool ends = piece.ends_file || (file_.meaning == NulMeaning::ends_search && first_nul_);
    const std::size_t last = end_of_last_line(std::string_view(text_).substr(num_before));
    const std::size_t complete = ends ? text_.size() : last != 0 ? num_before + last : 0;
    return {text_, complete, complete, complete};
}

// Where the search of the window ends: before a NUL, or after the last whole line.
std::size_t LargeFileSearch::find_end(const Window& window) {
    if (!first_nul_ || nul_offset_) {
        return window.complete;
    }
    const bool is_binary = *first_nul_ < kLookedAtForNul;  // nothing was searched yet
    if (file_.meaning == NulMeaning::ends_output) {
        // The walker looks for other NULs in the lines that it prints.
        if (is_binary) {
            nul_offset_ = first_nul_;
            walker_.hide_from(0, *first_nul_);
        }
        return window.complete;
    }
    nul_offset_ = first_nul_;
    const auto nul = static_cast<std::size_t>(*first_nul_ - text_offset_);
    return is_binary ? 0 : line_at(window.text, nul).begin;
}

// Searches the lines from `from` to the end of the text.
void LargeFileSearch::search_lines(std::string_view text, std::size_t from, bool is_last) {
    while (from < text.size() && !walker_.is_done()) {
        const bool is_rest = text.size() - from <= kSearchedTogether;
        const std::size_t to = is_rest ? text.size() : line_at(text, from + kSearchedTogether).next;
        LineRanges ranges;
        session_between_.prepare(text.substr(from, to - from));
        find_ranges(session_between_, false, options_.invert_match, text, from, to,
                    walker_.num_wanted(), ranges);
        walk(text.substr(0, to), from, ranges, is_last && to == text.size(), std::nullopt);
        from = to;
    }
}

// Passes on the lines of a text that were found after `from`.
void LargeFileSearch::walk(std::string_view text, std::size_t from, LineRanges& ranges,
                           bool is_last, std::optional<std::uint64_t> num_lines) {
    ranges.resize(std::min<std::uint64_t>(ranges.size(), walker_.num_wanted()));
    const bool may_print = !ranges.empty() || walker_.is_in_context();
    if (options_.needs_matches() && may_print) {
        session_.prepare(text);
    }
    walker_.walk(text, from, text_offset_, ranges, session_, is_last, num_lines);
}

// Keeps what follows `end`, and the lines before it that may be context.
void LargeFileSearch::keep(std::string_view text, std::size_t end) {
    const bool is_in_piece = text.data() != text_.data();
    // Much context is looked for again only when there is twice as much text.
    if (!is_in_piece && end <= std::max(kMaxOld, 2 * num_kept_)) {
        num_old_ = end;
        return;
    }
    num_old_ = num_kept_ = walker_.num_kept(text.substr(0, end));
    text_offset_ += end - num_old_;
    if (is_in_piece) {
        reserve_text(num_old_);
        text_.assign(text.substr(end - num_old_));
    } else {
        text_.erase(0, end - num_old_);
    }
}

// Makes space for so much text. A line, or many lines of context, may take any number of pieces.
void LargeFileSearch::reserve_text(std::size_t size) {
    if (size > text_.capacity()) {
        const std::size_t capacity = std::max(size, 2 * text_.capacity());
        text_memory_.set(text_.capacity() + capacity);
        text_.reserve(capacity);
        text_memory_.set(text_.capacity());
    }
}

}  // namespace gompfs::search

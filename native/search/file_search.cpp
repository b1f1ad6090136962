// Searches one file; see file_search.h.
#include "search/file_search.h"

#include <algorithm>
#include <utility>

#include "common/failures.h"

namespace gompfs::search {
namespace {

constexpr std::size_t kWindowOfThread = 4 << 20;
// What a thread searches before lines are passed on: their ranges may take 16 times as much memory.
constexpr std::size_t kPieceSize = 256 << 10;
constexpr std::size_t kPiecesOfThread = 4;
constexpr std::size_t kMaxText = 1 << 30;  // of a line, or of a file with --multiline
constexpr std::size_t kMultiLineBinary = 64 << 10;

// Where the search of a whole text ends, because of a NUL.
struct TextEnd {
    std::size_t end;
    std::optional<std::uint64_t> nul_offset;
};

TextEnd find_end(std::string_view text, bool is_whole, const SearchOptions& options) {
    BinaryRule rule;
    const auto end = rule.advance(text, 0, true);
    if (!end) {
        return {text.size(), std::nullopt};
    }
    if (!is_whole) {
        return {static_cast<std::size_t>(*end), rule.nul_offset()};
    }
    // ripgrep reads the whole file then, and looks for a NUL at its beginning and in matches.
    const std::uint64_t nul = *rule.nul_offset();
    if (nul < kMultiLineBinary) {
        return {0, nul};
    }
    if (options.prints_all_lines) {
        return {line_at(text, static_cast<std::size_t>(nul)).begin, nul};
    }
    return {text.size(), std::nullopt};
}

// Drops the ranges from the first one on that has a NUL, and the text from there on. Returns where
// the NUL is.
std::optional<std::uint64_t> stop_at_nul(std::string_view& text, std::vector<LineRange>& ranges) {
    for (std::size_t index = 0; index < ranges.size(); ++index) {
        const std::size_t nul = text.find('\0', ranges[index].begin);
        if (nul == std::string_view::npos) {
            return std::nullopt;
        }
        if (nul < ranges[index].end) {
            text = text.substr(0, ranges[index].begin);
            ranges.resize(index);
            return nul;
        }
    }
    return std::nullopt;
}

// Where the piece that begins at `begin` ends.
std::size_t piece_end(std::string_view text, std::size_t begin, bool is_multi_line) {
    const bool is_whole = is_multi_line || text.size() - begin <= kPieceSize;
    return is_whole ? text.size() : line_at(text, begin + kPieceSize).next;
}

Encoding searched_encoding(std::string_view beginning, const SearchOptions& options) {
    return options.ignores_byte_order ? Encoding::plain : encoding_of(beginning);
}

}  // namespace

NulMeaning nul_meaning(const SearchOptions& options, bool is_named) {
    if (options.searches_binary) {
        return NulMeaning::none;
    }
    if (!is_named && !options.searches_after_nul) {
        return NulMeaning::ends_search;
    }
    return is_named || options.is_multi_line ? NulMeaning::ends_output : NulMeaning::ends_line;
}

FileCounts search_file(const SearchOptions& options, NulMeaning meaning, MatchSession& session,
                       LineSink& sink, std::string_view path, std::string_view bytes) {
    std::string decoded;
    std::string_view text = bytes;
    const Encoding encoding = searched_encoding(bytes, options);
    if (encoding == Encoding::utf8_mark) {
        text.remove_prefix(kMaxMark);
    } else if (encoding != Encoding::plain) {
        Utf16Decoder decoder(encoding == Encoding::utf16_big);
        decoder.decode(bytes.substr(2), decoded);
        decoder.finish(decoded);
        text = decoded;
    }
    TextEnd end{text.size(), std::nullopt};
    if (meaning != NulMeaning::none) {
        end = find_end(text, options.is_multi_line || meaning == NulMeaning::ends_output, options);
    }
    FileWalker walker(options, sink, path, meaning == NulMeaning::ends_output);
    if (meaning == NulMeaning::ends_search) {
        text = text.substr(0, end.end);
    } else if (end.nul_offset) {
        walker.hide_from(end.end, *end.nul_offset);
        if (meaning == NulMeaning::ends_line) {
            decoded = text;
            std::replace(decoded.begin(), decoded.end(), '\0', '\n');
            text = decoded;
        }
    }
    const bool may_match = options.is_inverted || session.may_match(text);
    if (may_match) {
        session.prepare(text);
    }
    std::size_t searched = 0;
    do {
        const std::size_t begin = searched;
        searched = may_match ? piece_end(text, begin, options.is_multi_line) : text.size();
        std::vector<LineRange> ranges;
        if (may_match) {
            find_ranges(session, options.is_multi_line, options.is_inverted, text, begin, searched,
                        walker.num_wanted(), ranges);
        }
        if (options.is_multi_line && meaning == NulMeaning::ends_search && !end.nul_offset) {
            end.nul_offset = stop_at_nul(text, ranges);
            searched = text.size();
        }
        walker.walk(text.substr(0, searched), begin, 0, ranges, session, searched == text.size());
    } while (searched < text.size() && !walker.is_done());
    walker.finish(meaning == NulMeaning::ends_search ? end.nul_offset : std::nullopt);
    return walker.counts();
}

LargeFileSearch::LargeFileSearch(const SearchOptions& options, NulMeaning meaning,
                                 const Matcher& matcher, LineSink& sink, std::string path,
                                 std::uint64_t size, Read read, unsigned num_threads,
                                 std::optional<ScannedFile> scanned)
    : options_(options),
      meaning_(meaning),
      matcher_(matcher),
      path_(std::move(path)),
      size_(size),
      read_(std::move(read)),
      num_threads_(num_threads),
      walker_(options_, sink, path_, meaning == NulMeaning::ends_output),
      session_(matcher),
      scanned_(scanned && can_skip(*scanned) ? std::move(scanned) : std::nullopt) {}

// Whether nothing but matches and their context is of interest.
bool LargeFileSearch::can_skip(const ScannedFile& scanned) const {
    return !options_.is_inverted && !options_.is_multi_line && !options_.prints_all_lines &&
           (meaning_ == NulMeaning::none || !scanned.has_nul());
}

// Passes over the next blocks if no line that is of interest begins there, or goes on.
void LargeFileSearch::skip() {
    const std::uint64_t line_begin = text_offset_ + num_old_ + mark_size_;
    const auto skip = scanned_->skip_from(line_begin, read_offset_, options_.before);
    if (skip && skip->to > read_offset_) {
        walker_.skip(text_offset_ + num_old_, skip->to - mark_size_, skip->num_lines);
        text_.clear();
        num_old_ = 0;
        read_offset_ = skip->to;
        text_offset_ = read_offset_ - mark_size_;
    }
}

// Appends the next bytes of the file to the text: with --multiline, all of them.
void LargeFileSearch::read_more() {
    const std::uint64_t left = size_ - read_offset_;
    if (left == 0) {
        return;  // the rest was passed over
    }
    if (text_.size() > kMaxText || (options_.is_multi_line && left > kMaxText)) {
        throw SearchError(options_.is_multi_line
                              ? "the file is too large for --multiline: more than 1 GiB"
                              : "a line is too long: more than 1 GiB");
    }
    std::uint64_t wanted = options_.is_multi_line ? kMaxText : kWindowOfThread * num_threads_;
    wanted = scanned_ ? scanned_->read_size(read_offset_, wanted) : wanted;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, wanted));
    if (utf16_) {
        std::string bytes;
        read_(read_offset_, size, bytes);
        utf16_->decode(bytes, text_);
        if (size == left) {
            utf16_->finish(text_);
        }
    } else {
        const std::size_t before = text_.size();
        read_(read_offset_, size, text_);
        if (read_offset_ == 0) {
            const Encoding encoding =
                searched_encoding(std::string_view(text_).substr(before), options_);
            if (encoding == Encoding::utf8_mark) {
                text_.erase(before, kMaxMark);
                mark_size_ = kMaxMark;
            } else if (encoding != Encoding::plain) {
                utf16_.emplace(encoding == Encoding::utf16_big);
                const std::string bytes = std::exchange(text_, {});
                utf16_->decode(std::string_view(bytes).substr(2), text_);
            }
        }
    }
    read_offset_ += size;
}

// Searches pieces of the window, which end at the ends of lines, on all threads.
std::vector<std::vector<LineRange>> LargeFileSearch::find_in_pieces(
    std::string_view window, std::size_t begin, const std::vector<std::size_t>& ends) {
    std::vector<std::vector<LineRange>> found(ends.size());
    const std::uint64_t num_wanted = walker_.num_wanted();
    parallel_for_all(found.size(), num_threads_, [&](std::size_t index) {
        const std::size_t from = index == 0 ? begin : ends[index - 1];
        MatchSession session(matcher_);
        session.prepare(window.substr(from, ends[index] - from));
        find_ranges(session, options_.is_multi_line, options_.is_inverted, window, from,
                    ends[index], num_wanted, found[index]);
    });
    return found;
}

// Searches the lines of the window that were not searched yet.
void LargeFileSearch::search_lines(std::string_view window, bool is_last) {
    session_.prepare(window);
    std::size_t searched = num_old_;
    do {
        std::vector<std::size_t> ends{piece_end(window, searched, options_.is_multi_line)};
        while (ends.size() < kPiecesOfThread * num_threads_ && ends.back() < window.size()) {
            ends.push_back(piece_end(window, ends.back(), options_.is_multi_line));
        }
        std::vector<std::vector<LineRange>> found = find_in_pieces(window, searched, ends);
        for (std::size_t index = 0; index < ends.size() && !walker_.is_done(); ++index) {
            std::vector<LineRange>& ranges = found[index];
            ranges.resize(std::min<std::uint64_t>(ranges.size(), walker_.num_wanted()));
            if (options_.is_multi_line && meaning_ == NulMeaning::ends_search && !nul_offset_) {
                nul_offset_ = stop_at_nul(window, ranges);
                ends[index] = window.size();
            }
            walker_.walk(window.substr(0, ends[index]), searched, text_offset_, ranges, session_,
                         is_last && ends[index] == window.size());
            searched = ends[index];
            ranges = {};
        }
    } while (searched < window.size() && !walker_.is_done());
}

// Looks for a NUL in the window that ends at `end`. Returns where its search ends.
std::size_t LargeFileSearch::find_window_end(std::size_t end, bool is_end) {
    if (meaning_ == NulMeaning::none || scanned_) {
        return end;
    }
    const std::uint64_t searched = text_offset_ + num_old_;
    std::uint64_t stop = searched;
    if (options_.is_multi_line || meaning_ == NulMeaning::ends_output) {
        if (searched == 0) {
            const TextEnd found = find_end(text_, true, options_);
            nul_offset_ = found.nul_offset;
            stop = found.end;
            if (nul_offset_ && meaning_ != NulMeaning::ends_search) {
                walker_.hide_from(stop, *nul_offset_);
            }
        }
    } else if (!nul_offset_) {
        const std::string_view complete = std::string_view(text_).substr(num_old_, end - num_old_);
        if (const auto found = binary_rule_.advance(complete, searched, is_end)) {
            nul_offset_ = binary_rule_.nul_offset();
            stop = std::max(*found, searched);
            if (meaning_ == NulMeaning::ends_line) {
                walker_.hide_from(stop, *nul_offset_);
            }
        }
    }
    if (meaning_ == NulMeaning::ends_line && nul_offset_) {
        std::replace(text_.begin(), text_.end(), '\0', '\n');
    }
    const bool ends_here = meaning_ == NulMeaning::ends_search && nul_offset_;
    return ends_here ? num_old_ + static_cast<std::size_t>(stop - searched) : end;
}

bool LargeFileSearch::search_window() {
    if (scanned_ && read_offset_ != 0 && !utf16_ && !walker_.is_in_context()) {
        skip();
    }
    const std::size_t num_before = text_.size();
    read_more();
    const bool is_end = read_offset_ == size_;
    // What was read before had no complete line that was not searched.
    const std::string_view read = std::string_view(text_).substr(num_before);
    const std::size_t newline = read.rfind('\n');
    // A line that does not end, as in a hole of a sparse file, need not be read further then.
    const bool has_end = is_end || (meaning_ == NulMeaning::ends_search && !scanned_ &&
                                    read.find('\0') != read.npos);
    if (!has_end && newline == read.npos) {
        return true;
    }
    const std::size_t end =
        find_window_end(has_end ? text_.size() : num_before + newline + 1, is_end);
    const std::string_view window = std::string_view(text_).substr(0, end);
    const bool ends_at_nul = meaning_ == NulMeaning::ends_search;
    const bool is_last = is_end || (ends_at_nul && nul_offset_);
    search_lines(window, is_last);
    if (is_last || walker_.is_done()) {
        walker_.finish(ends_at_nul ? nul_offset_ : std::nullopt);
        return false;
    }
    const std::size_t kept = walker_.num_kept(window);
    text_offset_ += end - kept;
    text_.erase(0, end - kept);
    num_old_ = kept;
    return true;
}

}  // namespace gompfs::search

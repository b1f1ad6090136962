// Passes matched lines and their context on; see file_walker.h.
#include "search/file_walker.h"

#include <algorithm>

namespace gompfs::search {

using Output = SearchOptions::Output;

std::uint64_t FileWalker::num_wanted() const {
    const std::uint64_t allowed = num_allowed();
    // With --multiline, each match counts, also of lines that are found together.
    const bool has_context = options_.prints_lines() && !options_.is_multi_line;
    const std::uint64_t in_context = has_context ? options_.after() : 0;
    return allowed > ~std::uint64_t{0} - in_context ? allowed : allowed + in_context;
}

std::uint64_t FileWalker::num_allowed() const {
    const std::uint64_t limit =
        options_.needs_one_match() ? 1 : options_.max_count.value_or(~std::uint64_t{0});
    return limit - std::min(limit, counts_.num_matched_lines);
}

std::size_t FileWalker::num_kept(std::string_view window) const {
    std::size_t begin = window.size();
    for (std::size_t count = 0; count < options_.before() && begin != 0; ++count) {
        begin = line_before(window, begin).begin;
    }
    return window.size() - begin;
}

void FileWalker::begin_file() {
    if (!has_begun_) {
        has_begun_ = true;
        sink_.begin_file(path_);
    }
}

void FileWalker::walk(std::string_view window, std::size_t num_old, std::uint64_t file_offset,
                      std::span<const LineRange> ranges, MatchSession& session, bool is_last,
                      std::optional<std::uint64_t> num_lines) {
    const std::uint64_t num_before = num_lines_;
    window_ = window;
    window_offset_ = file_offset;
    session_ = &session;
    counts_.num_bytes += window.size() - num_old;
    for (const LineRange& range : ranges) {
        const bool is_allowed = num_allowed() != 0;
        if (options_.prints_lines()) {
            begin_file();
            add_after(range.begin);
            if (is_stopped_ || (!is_allowed && after_left_ == 0)) {
                return;
            }
            add_before(range);
        }
        if (is_stopped_ || !add_match(range)) {
            return;
        }
    }
    add_after(window.size());
    if (num_lines) {
        num_lines_ = num_before + *num_lines;
        counted_to_ = file_offset + window.size();
    } else if (!is_last && options_.has_line_numbers()) {
        line_number(window.size());  // the next window counts from here
    }
}

void FileWalker::skip(std::uint64_t from, std::uint64_t to, std::uint64_t num_lines) {
    counts_.num_bytes += to - from;
    num_lines_ += num_lines;
    counted_to_ = to;
}

// The number of the line that begins at a position of the window.
std::uint64_t FileWalker::line_number(std::size_t position) {
    const std::uint64_t target = window_offset_ + position;
    if (target >= counted_to_) {
        const auto from = static_cast<std::size_t>(counted_to_ - window_offset_);
        num_lines_ += count_newlines(window_.substr(from, position - from));
        counted_to_ = target;
        return num_lines_ + 1;
    }
    // A line of context before a line that was counted already, or of the window before. Often it
    // follows another one, whose number is known.
    if (target >= last_context_ && last_context_ >= window_offset_ && context_number_ != 0) {
        const auto last = static_cast<std::size_t>(last_context_ - window_offset_);
        context_number_ += count_newlines(window_.substr(last, position - last));
    } else {
        const auto counted = static_cast<std::size_t>(counted_to_ - window_offset_);
        context_number_ =
            num_lines_ - count_newlines(window_.substr(position, counted - position)) + 1;
    }
    last_context_ = target;
    return context_number_;
}

// Lines with what the options need to know of them.
FoundLines FileWalker::found(const LineRange& range, bool has_matches) {
    const std::string_view bytes = window_.substr(range.begin, range.end - range.begin);
    matches_.clear();
    const bool is_replaced = options_.replace && options_.prints_lines();
    if (has_matches && options_.needs_matches()) {
        find_matches(*session_, window_.substr(range.begin), bytes.size(), options_.is_multi_line,
                     options_.crlf, matches_);
    }
    FoundLines lines{bytes, options_.has_line_numbers() ? line_number(range.begin) : 0,
                     window_offset_ + range.begin, matches_};
    if (is_replaced && !matches_.empty()) {
        session_->replace(window_.substr(range.begin), bytes.size(), matches_,
                          options_.wanted_line_size(), replaced_);
        lines.printed = replaced_.text;
        lines.replacements = replaced_.matches;
        if (options_.output() == Output::json) {
            return lines;
        }
        lines.matches = replaced_.matches;
        lines.num_matches = matches_.size();
    }
    return lines;
}

// Returns whether lines are hidden, and end the search.
bool FileWalker::stops_at(const LineRange& range) {
    if (looks_for_nul_ && !nul_offset_ && options_.prints_lines()) {
        const std::size_t nul = window_.substr(0, range.end).find('\0', range.begin);
        if (nul != std::string_view::npos) {
            hide_from(window_offset_ + range.begin, window_offset_ + nul);
        }
    }
    if (hidden_from_ && window_offset_ + range.begin >= *hidden_from_) {
        is_past_nul_ = true;
        is_stopped_ = options_.output() == Output::lines;
    }
    return is_stopped_;
}

void FileWalker::add_context(const Line& line) {
    if (is_stopped_ || stops_at({line.begin, line.next})) {
        return;
    }
    begin_file();
    const FoundLines lines = found({line.begin, line.next}, options_.invert_match);
    pass_on(ContentRecord::Kind::context, &lines);
    shown_end_ = passed_end_ = window_offset_ + line.next;
}

// Passes on what is left of the context after the last match, up to a position.
void FileWalker::add_after(std::size_t until) {
    while (!is_stopped_ && after_left_ != 0 && shown_end_ < window_offset_ + until) {
        --after_left_;
        add_context(line_from(window_, static_cast<std::size_t>(shown_end_ - window_offset_)));
    }
}

void FileWalker::add_before(const LineRange& range) {
    if (!options_.has_context()) {
        return;
    }
    std::size_t begin = range.begin;
    const auto is_new = [&] { return begin != 0 && window_offset_ + begin > shown_end_; };
    for (std::size_t count = 0; count < options_.before() && is_new(); ++count) {
        begin = line_before(window_, begin).begin;
    }
    if (shown_end_ != 0 && window_offset_ + begin > shown_end_) {
        pass_on(ContentRecord::Kind::gap, nullptr);
    }
    while (!is_stopped_ && begin < range.begin) {
        const Line line = line_from(window_, begin);
        add_context(line);
        begin = line.next;
    }
}

// Returns false if the match ends the search.
bool FileWalker::add_match(const LineRange& range) {
    const bool is_counted = num_allowed() != 0;
    if (stops_at(range)) {
        ++counts_.num_matched_lines;
        return false;
    }
    const std::size_t after_left = is_counted ? options_.after() : after_left_ - 1;
    const FoundLines lines = found(range, !options_.invert_match);
    const std::size_t num_lines =
        options_.is_multi_line ? count_newlines(lines.bytes) + !lines.bytes.ends_with('\n') : 1;
    counts_.num_matched_lines += is_counted ? 1 : 0;
    counts_.num_lines += num_lines;
    passed_end_ = window_offset_ + range.end;
    // As in ripgrep from 15 on, an empty match at the end of a file is one that is only counted.
    const bool counts_one = !options_.is_multi_line && !options_.invert_match &&
                            !options_.prints_lines() && options_.needs_matches();
    counts_.num_matches += std::max<std::size_t>(matches_.size(), counts_one ? 1 : 0);
    if (options_.prints_lines()) {
        pass_on(ContentRecord::Kind::matched, &lines);
        shown_end_ = window_offset_ + range.end;
        after_left_ = after_left;
    }
    return true;
}

void FileWalker::finish(std::optional<std::uint64_t> end_offset) {
    if (num_allowed() == 0 && after_left_ == 0) {
        counts_.num_bytes = std::min(counts_.num_bytes, passed_end_);
    }
    const bool is_binary = end_offset && !is_done();
    const bool has_matches = counts_.num_matched_lines != 0;
    if (is_past_nul_ || !is_done()) {
        counts_.binary_offset = is_binary ? end_offset : nul_offset_;
        counts_.is_cut = is_binary;
    }
    if (record_ != nullptr) {
        record_->finish(counts_, false);
    }
    switch (options_.output()) {
        case Output::lines:
        case Output::json:
            if (!has_begun_) {
                return;
            }
            break;
        case Output::count:
        case Output::count_matches:
            if (!has_matches || is_binary) {
                return;
            }
            break;
        case Output::files_with_matches:
            if (!has_matches || is_binary) {
                return;
            }
            break;
        case Output::files_without_match:
            if (has_matches || is_binary) {
                return;
            }
            break;
        case Output::files:
            break;
    }
    if (record_ != nullptr) {
        record_->finish(counts_, true);
    }
    end_file();
}

void FileWalker::finish_counted(std::uint64_t num_lines, std::uint64_t num_bytes) {
    counts_.num_matched_lines = counts_.num_lines = std::min(num_lines, num_allowed());
    counts_.num_bytes = passed_end_ = num_bytes;
    finish(std::nullopt);
}

void FileWalker::end_file() {
    begin_file();
    counts_.num_bytes_printed = options_.prints_lines() ? sink_.output_size_of_file() : 0;
    sink_.end_file(counts_);
    if (options_.output() == Output::lines) {
        counts_.num_bytes_printed = sink_.output_size_of_file();
    }
}

void FileWalker::pass_on(ContentRecord::Kind kind, const FoundLines* lines) {
    if (record_ != nullptr) {
        record_->add(kind, lines);
    }
    switch (kind) {
        case ContentRecord::Kind::matched:
            sink_.matched(*lines);
            break;
        case ContentRecord::Kind::context:
            sink_.context(*lines);
            break;
        case ContentRecord::Kind::gap:
            sink_.gap();
            break;
    }
}

void FileWalker::repeat(const ContentRecord& record) {
    record.for_each([&](ContentRecord::Kind kind, const FoundLines& lines) {
        begin_file();
        pass_on(kind, &lines);
    });
    counts_ = record.counts();
    if (record.has_end()) {
        end_file();
    }
}

}  // namespace gompfs::search

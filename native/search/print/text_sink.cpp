// Writes lines as ripgrep does; see text_sink.h.
#include "search/print/text_sink.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "search/match/line_ranges.h"
#include "search/match/lines.h"

namespace gompfs::search {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kPathColor = "\x1b[0m\x1b[35m";
constexpr std::string_view kLineColor = "\x1b[0m\x1b[32m";
constexpr std::string_view kColumnColor = "\x1b[0m";
constexpr std::string_view kMatchColor = "\x1b[0m\x1b[1m\x1b[31m";
constexpr std::string_view kGap = "--";  // between groups of lines
constexpr std::string_view kSpace = "\t\v\f\r ";

using Kind = SearchOptions::Output;

// Those of the matches, which are in order, that overlap [begin, end).
std::span<const Match> overlapping(std::span<const Match> matches, std::size_t begin,
                                   std::size_t end) {
    const auto first = std::partition_point(matches.begin(), matches.end(),
                                            [&](const Match& match) { return match.end <= begin; });
    const auto last = std::partition_point(first, matches.end(),
                                           [&](const Match& match) { return match.begin < end; });
    return {first, last};
}

// The matches that overlap [begin, end), cut to it, with offsets from `begin`.
Matches matches_in(std::span<const Match> matches, std::size_t begin, std::size_t end) {
    Matches inside;
    for (const auto [first, last] : overlapping(matches, begin, end)) {
        inside.push_back({std::max(first, begin) - begin, std::min(last, end) - begin});
    }
    return inside;
}

std::optional<std::size_t> first_column(const FoundLines& lines) {
    return lines.matches.empty() ? std::nullopt : std::optional(lines.matches.front().begin);
}

std::string line_end(const SearchOptions& options) { return options.crlf ? "\r\n" : "\n"; }

std::string_view without_newline(std::string_view line) {
    if (line.ends_with('\n')) {
        line.remove_suffix(1);
    }
    return line;
}

// How long the white space is at the beginning of a line.
std::size_t indent_of(std::string_view line) {
    return std::min(line.find_first_not_of(kSpace), without_newline(line).size());
}

}  // namespace

std::string TextSink::separator(const SearchOptions& options) {
    if (options.output() != Kind::lines) {
        return "";
    }
    if (options.heading) {
        return line_end(options);
    }
    return options.has_context() ? std::string(kGap) + line_end(options) : "";
}

void TextSink::begin_file(std::string_view path) {
    begin_output_of_file();
    path_ = path;
    has_lines_ = false;
}

// What comes before the first line of a file.
void TextSink::begin_lines() {
    has_lines_ = true;
    if (output_.empty()) {
        begins_with_lines_ = true;
    } else {
        output_ += separator(options_);
    }
    if (options_.heading && options_.with_filename) {
        add_path_field(line_end(options_));
    }
}

void TextSink::add_path() {
    output_ += options_.color ? kPathColor : "";
    output_ += path_;
    output_ += options_.color ? kReset : "";
}

void TextSink::add_path_field(std::string_view separator) {
    add_path();
    output_ += options_.null ? std::string_view("\0", 1) : separator;
}

void TextSink::add_number(std::uint64_t number, std::string_view color) {
    output_ += options_.color ? color : "";
    output_ += std::to_string(number);
    output_ += options_.color ? kReset : "";
    output_ += field_end();
}

void TextSink::add_prefix(std::uint64_t number, std::optional<std::size_t> column) {
    if (options_.with_filename && !options_.heading) {
        add_path_field(field_end());
    }
    if (options_.has_line_numbers()) {
        add_number(number, kLineColor);
    }
    if (options_.has_columns() && column) {
        add_number(*column + 1, kColumnColor);
    }
}

void TextSink::add_colored(std::string_view line, std::span<const Match> matches) {
    std::size_t at = 0;
    for (std::size_t index = 0; index < matches.size();) {
        const std::size_t begin = matches[index].begin;
        std::size_t end = matches[index].end;
        for (++index; index < matches.size() && matches[index].begin == end; ++index) {
            end = matches[index].end;
        }
        end = std::min(end, line.size());
        if (begin < end) {
            add(line.substr(at, begin - at));
            output_ += kMatchColor;
            add(line.substr(begin, end - begin));
            output_ += kReset;
            end_step();
            at = end;
        }
    }
    add(line.substr(at));
}

// Adds a line with its matches; num_matches is the number of those in all lines found together.
void TextSink::add_line(std::string_view line, std::span<const Match> matches,
                        std::size_t num_matches) {
    // As in ripgrep, what is printed without colors is trimmed before it is measured.
    const bool is_colored = options_.color && !matches.empty();
    bool is_long = is_colored && is_too_long(line);
    Matches moved;
    if (const std::size_t indent = options_.trim ? indent_of(line) : 0; indent != 0) {
        moved = matches_in(matches, indent, line.size());
        matches = moved;
        line.remove_prefix(indent);
    }
    if (is_long || (!is_colored && is_too_long(line))) {
        add_long_line(num_matches);
        return;
    }
    const bool keeps_end = line.ends_with('\n') && !is_colored;
    if (is_colored && options_.crlf && line.ends_with("\r\n")) {
        line.remove_suffix(2);
    }
    if (is_colored) {
        add_colored(without_newline(line), matches);
    } else {
        add(without_newline(line));
    }
    output_ += keeps_end ? "\n" : line_end(options_);
}

void TextSink::add_long_line(std::size_t num_matches) {
    if (num_matches == 0 || options_.only_matching) {
        output_ += is_context_ ? "[Omitted long context line]" : "[Omitted long matching line]";
    } else {
        output_ += "[Omitted long line with " + std::to_string(num_matches) + " matches]";
    }
    output_ += line_end(options_);
}

// The matches to show where one match of a line is printed. ripgrep counts all of them if it does
// not color them.
std::span<const Match> TextSink::matches_of_line(const FoundLines& lines,
                                                 const Match& match) const {
    return options_.color ? std::span(&match, 1) : lines.matches;
}

// Adds the matches of a line, each as a line.
void TextSink::add_matches(const FoundLines& lines) {
    for (const auto [begin, end] : lines.matches) {
        add_prefix(lines.line_number, begin);
        const Match whole{0, end - begin};
        add_line(lines.printed.substr(begin, end - begin), matches_of_line(lines, whole), 1);
        end_step();
    }
}

// Adds the matches of several lines. A match over several lines is printed as the parts of it that
// the lines have.
void TextSink::add_matches_by_line(const FoundLines& lines) {
    std::uint64_t number = lines.line_number;
    for (std::size_t at = 0; at < lines.printed.size(); ++number) {
        const Line line = line_from(lines.printed, at);
        for (const auto [begin, end] : overlapping(lines.matches, line.begin, line.end)) {
            const std::size_t first = std::max(begin, line.begin), last = std::min(end, line.end);
            if (first < last) {
                add_prefix(number, begin);
                const Match whole{0, last - first};
                add_line(lines.printed.substr(first, last - first), {&whole, 1}, 1);
                end_step();
            }
        }
        at = line.next;
    }
}

// Adds the line again for each of its matches.
void TextSink::add_each_match(const FoundLines& lines) {
    for (const Match& match : lines.matches) {
        add_prefix(lines.line_number, match.begin);
        add_line(lines.printed, matches_of_line(lines, match), lines.num_matches);
        end_step();
    }
}

// Adds for each match the line in which it begins.
void TextSink::add_line_of_each_match(const FoundLines& lines) {
    std::uint64_t number = lines.line_number;
    Line line = line_from(lines.printed, 0);
    for (const Match& match : lines.matches) {
        for (; line.next <= match.begin && line.next < lines.printed.size(); ++number) {
            line = line_from(lines.printed, line.next);
        }
        add_prefix(number, match.begin - line.begin);
        add_line(lines.printed.substr(line.begin, line.next - line.begin),
                 matches_in({&match, 1}, line.begin, line.next), lines.num_matches);
        end_step();
    }
}

// Adds all lines, each with the column of the first match.
void TextSink::add_several(const FoundLines& lines) {
    std::uint64_t number = lines.line_number;
    for (std::size_t at = 0; at < lines.printed.size();) {
        const std::size_t next = line_from(lines.printed, at).next;
        add_prefix(number++, first_column(lines));
        add_line(lines.printed.substr(at, next - at), matches_in(lines.matches, at, next),
                 lines.num_matches);
        end_step();
        at = next;
    }
}

void TextSink::add_lines(const FoundLines& lines, bool is_context) {
    if (!has_lines_) {
        begin_lines();
    }
    is_context_ = is_context;
    is_one_line_ = !options_.is_multi_line || is_context;
    if (lines.matches.empty() || !(options_.only_matching || options_.vimgrep)) {
        if (!is_one_line_) {
            add_several(lines);
            return;
        }
        add_prefix(lines.line_number, first_column(lines));
        add_line(lines.printed, lines.matches, lines.num_matches);
    } else if (options_.only_matching) {
        is_one_line_ ? add_matches(lines) : add_matches_by_line(lines);
    } else {
        is_one_line_ ? add_each_match(lines) : add_line_of_each_match(lines);
    }
    end_step();
}

void TextSink::gap() { (output_ += kGap) += line_end(options_); }

void TextSink::end_file(const FileCounts& counts) {
    is_context_ = false;
    switch (options_.output()) {
        case Kind::count:
        case Kind::count_matches:
            if (options_.with_filename) {
                add_path_field(":");
            }
            output_ += std::to_string(options_.prints_match_counts() ? counts.num_matches
                                                                     : counts.num_matched_lines);
            output_ += line_end(options_);
            return;
        case Kind::files_with_matches:
        case Kind::files_without_match:
            add_path_field(line_end(options_));
            return;
        case Kind::files:
            add_path_field("\n");
            return;
        default:
            break;
    }
    if (counts.binary_offset && counts.num_matched_lines != 0) {
        add_binary_message(counts);
    }
}

void TextSink::add_binary_message(const FileCounts& counts) {
    if (options_.with_filename) {
        add_path();
        output_ += ": ";
    }
    output_ += counts.is_cut ? "WARNING: stopped searching binary file after match"
                             : "binary file matches";
    output_ +=
        " (found \"\\0\" byte around offset " + std::to_string(*counts.binary_offset) + ")\n";
}

}  // namespace gompfs::search

// Writes lines as ripgrep does; see text_sink.h.
#include "search/text_sink.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "search/lines.h"

namespace gompfs::search {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kPathColor = "\x1b[0m\x1b[35m";
constexpr std::string_view kNumberColor = "\x1b[0m\x1b[32m";
constexpr std::string_view kMatchColor = "\x1b[0m\x1b[1m\x1b[31m";

using Output = SearchOptions::Output;

// The matches that overlap [begin, end), cut to it, with offsets from `begin`.
std::vector<Match> matches_in(std::span<const Match> matches, std::size_t begin, std::size_t end) {
    std::vector<Match> inside;
    for (const auto [first, last] : matches) {
        if (first < end && last > begin) {
            inside.push_back({std::max(first, begin) - begin, std::min(last, end) - begin});
        }
    }
    return inside;
}

std::string_view without_newline(std::string_view line) {
    if (line.ends_with('\n')) {
        line.remove_suffix(1);
    }
    return line;
}

}  // namespace

std::string_view TextSink::separator(const SearchOptions& options) {
    if (options.output != Output::lines) {
        return "";
    }
    return options.has_heading && options.has_paths ? "\n" : options.has_context() ? "--\n" : "";
}

void TextSink::begin_file(std::string_view path) {
    if (!output_.empty()) {
        output_ += separator(options_);
    }
    path_ = path;
    if (options_.output == Output::lines && options_.has_heading && options_.has_paths) {
        add_path();
        output_ += options_.has_null ? '\0' : '\n';
    }
}

void TextSink::add_path() {
    output_ += options_.has_color ? kPathColor : "";
    output_ += path_;
    output_ += options_.has_color ? kReset : "";
}

// The column is counted from 0, and printed from 1.
void TextSink::add_prefix(std::uint64_t line_number, std::optional<std::size_t> column,
                          char separator) {
    if (options_.has_paths && !options_.has_heading) {
        add_path();
        output_ += options_.has_null ? '\0' : separator;
    }
    if (options_.has_line_numbers) {
        output_ += options_.has_color ? kNumberColor : "";
        output_ += std::to_string(line_number);
        output_ += options_.has_color ? kReset : "";
        output_ += separator;
    }
    if (options_.has_columns && column) {
        output_ += options_.has_color ? kReset : "";
        output_ += std::to_string(*column + 1);
        output_ += options_.has_color ? kReset : "";
        output_ += separator;
    }
}

void TextSink::add_omitted(std::size_t num_matches, bool is_context) {
    if (num_matches == 0 || options_.only_matching) {
        output_ += is_context ? "[Omitted long context line]" : "[Omitted long matching line]";
    } else {
        output_ += "[Omitted long line with " + std::to_string(num_matches) + " matches]";
    }
    output_ += '\n';
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
            output_ += line.substr(at, begin - at);
            output_ += kMatchColor;
            output_ += line.substr(begin, end - begin);
            output_ += kReset;
            at = end;
        }
    }
    output_ += line.substr(at);
}

void TextSink::add_line(std::string_view line, std::span<const Match> matches, bool is_context) {
    if (is_too_long(line)) {
        add_omitted(matches.size(), is_context);
        return;
    }
    line = without_newline(line);
    if (options_.has_color && !is_context) {
        add_colored(line, matches);
    } else {
        output_ += line;
    }
    output_ += '\n';
}

void TextSink::add_each_match(const FoundLines& lines) {
    std::uint64_t number = lines.line_number;
    std::size_t counted = 0;
    for (const auto [begin, end] : lines.matches) {
        // A match over several lines is printed as the lines that it has.
        std::size_t at = begin;
        do {
            const Line line =
                at == lines.bytes.size() ? Line{at, at, at} : line_from(lines.bytes, at);
            number += count_newlines(lines.bytes.substr(counted, at - counted));
            counted = at;
            const std::string_view piece = lines.bytes.substr(at, std::min(line.end, end) - at);
            add_prefix(number, begin, ':');
            const Match whole{0, piece.size()};
            add_line(piece, {&whole, 1}, false);
            at = std::max(line.next, at + 1);
        } while (at < end);
    }
}

void TextSink::matched(const FoundLines& lines) {
    if (options_.only_matching && !options_.is_inverted) {
        add_each_match(lines);
        return;
    }
    std::uint64_t number = lines.line_number;
    // Of several lines, each has the column of the first match.
    const auto column =
        lines.matches.empty() ? std::nullopt : std::optional(lines.matches.front().begin);
    for (std::size_t at = 0; at < lines.bytes.size();) {
        const Line line = line_from(lines.bytes, at);
        add_prefix(number++, column, ':');
        add_line(lines.bytes.substr(at, line.next - at), matches_in(lines.matches, at, line.next),
                 false);
        at = line.next;
    }
}

void TextSink::context(const FoundLines& line) {
    add_prefix(line.line_number, std::nullopt, '-');
    add_line(line.bytes, {}, true);
}

void TextSink::gap() { output_ += "--\n"; }

void TextSink::end_file(const FileCounts& counts) {
    const auto add_named = [&](char separator) {
        add_path();
        output_ += options_.has_null ? '\0' : separator;
    };
    switch (options_.output) {
        case Output::count:
            if (options_.has_paths) {
                add_named(':');
            }
            output_ += std::to_string(options_.prints_match_counts() ? counts.num_matches
                                                                     : counts.num_matched_lines);
            output_ += '\n';
            return;
        case Output::files_with_matches:
        case Output::files_without_match:
            add_named('\n');
            return;
        default:
            break;
    }
    if (counts.binary_offset) {
        if (options_.has_paths) {
            add_path();
            output_ += ": ";
        }
        output_ +=
            "WARNING: stopped searching binary file after match (found \"\\0\" byte around "
            "offset " +
            std::to_string(*counts.binary_offset) + ")\n";
    }
}

std::string TextSink::take_output() { return std::exchange(output_, {}); }

}  // namespace gompfs::search

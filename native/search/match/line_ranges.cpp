// Finds lines with matches; see line_ranges.h.
#include "search/match/line_ranges.h"

#include <algorithm>

#include "common/cancellation.h"

namespace gompfs::search {
namespace {

// Calls take(range) for the ranges with matches in order, until it returns false. With --multiline,
// ranges have the lines of the first max_matches matches.
template <typename Take>
void for_each_range(MatchSession& session, bool is_multi_line, std::string_view text,
                    std::size_t from, std::size_t max_matches, const Take& take) {
    CancellationPoint check;
    LineRange last{from, from};
    std::size_t at = from;
    bool has_last = false;
    for (std::size_t num_matches = 0; at < text.size() && num_matches < max_matches;
         ++num_matches) {
        check();
        const auto match = is_multi_line ? session.find(text, at) : session.find_in_lines(text, at);
        if (!match || (match->begin == text.size() && text.back() == '\n')) {
            break;
        }
        const std::size_t next = match->end > at ? match->end : at + 1;
        if (is_multi_line && has_last && match->begin < last.end) {
            // Most matches of a long line: its end is not looked for again.
            if (match->end > last.end) {
                last.end = line_at(text, match->end - 1).next;
            }
            at = next;
            continue;
        }
        const Line first = line_at(text, match->begin);
        if (!is_multi_line) {
            if (!take(LineRange{first.begin, first.next})) {
                return;
            }
            at = first.next;
            continue;
        }
        // The lines of matches that overlap or follow each other become one range.
        const std::size_t end =
            match->end > first.next ? line_at(text, match->end - 1).next : first.next;
        if (has_last && first.begin <= last.end) {
            last.end = std::max(last.end, end);
        } else {
            if (has_last && !take(last)) {
                return;
            }
            last = {first.begin, end};
            has_last = true;
        }
        at = next;
    }
    if (has_last) {
        take(last);
    }
}

}  // namespace

void find_ranges(MatchSession& session, bool is_multi_line, bool is_inverted, std::string_view text,
                 std::size_t from, std::size_t to, std::size_t max_ranges, LineRanges& ranges) {
    const std::size_t limit = ranges.size() + max_ranges;
    const std::string_view searched = text.substr(0, to);
    if (!is_inverted) {
        const auto take = [&](const LineRange& range) {
            ranges.push_back(range);
            return ranges.size() < limit;
        };
        for_each_range(session, is_multi_line, searched, from, max_ranges, take);
        return;
    }
    std::size_t at = from;
    const auto add_lines_before = [&](std::size_t end) {
        while (at < end && ranges.size() < limit) {
            const Line line = line_from(searched, at);
            ranges.push_back({line.begin, line.next});
            at = line.next;
        }
        return ranges.size() < limit;
    };
    const auto take = [&](const LineRange& range) {
        const bool goes_on = add_lines_before(range.begin);
        at = range.end;
        return goes_on;
    };
    for_each_range(session, is_multi_line, searched, from, ~std::size_t{0}, take);
    add_lines_before(searched.size());
}

void find_matches(MatchSession& session, std::string_view text, std::size_t size,
                  bool is_multi_line, bool is_crlf, Matches& matches) {
    matches.clear();
    text = matched_part(text, size, is_multi_line, is_crlf);
    std::size_t last_end = LiteralFinder::kNone;
    CancellationPoint check;
    for (std::size_t at = 0; at < size && at <= text.size();) {
        check();
        const auto match = session.find(text, at);
        if (!match || match->begin >= size) {
            return;
        }
        const bool is_empty = match->begin == match->end;
        // An empty match right after another match does not count.
        if (!is_empty || match->begin != last_end) {
            matches.push_back(*match);
            last_end = match->end;
        }
        at = is_empty ? match->end + 1 : match->end;
    }
}

}  // namespace gompfs::search

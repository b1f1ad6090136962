// Finds the lines of a text that have matches.
#pragma once

#include <cstddef>
#include <string_view>

#include "search/match/lines.h"
#include "search/match/matcher.h"
#include "search/match/search_memory.h"

namespace gompfs::search {

// Whole lines, from `begin` to `end` with its last line feed. With --multiline, a match may take
// several lines; otherwise a range is one line.
struct LineRange {
    std::size_t begin, end;
};

// They may take more memory than the text.
using LineRanges = CountedVector<LineRange>;
using Matches = CountedVector<Match>;

// Appends the lines in [from, to) of `text` that have matches; or, if is_inverted, that have none.
// `from` and `to` are beginnings of lines, or the end of the text. Stops after max_ranges; with
// --multiline, as in ripgrep from 15 on, after as many matches. The session must be prepared for
// the text.
void find_ranges(MatchSession& session, bool is_multi_line, bool is_inverted, std::string_view text,
                 std::size_t from, std::size_t to, std::size_t max_ranges, LineRanges& ranges);

// All matches in the lines that the first `size` bytes of a text are, without overlaps. As in
// ripgrep, an empty match at the end of a last line without a line feed does not count.
void find_matches(MatchSession& session, std::string_view text, std::size_t size,
                  bool is_multi_line, bool is_crlf, Matches& matches);

}  // namespace gompfs::search

// Walks over the text of one file, a window of whole lines at a time, and passes the lines with
// matches and their context to a sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "search/content_cache.h"
#include "search/match/line_ranges.h"
#include "search/match/replacement.h"
#include "search/print/line_sink.h"
#include "search/print/search_options.h"

namespace gompfs::search {

// What a NUL in a file means. As in ripgrep, a file that has one near its beginning is binary.
enum class NulMeaning {
    none,
    // Nothing of a binary file is searched; another file ends before the line with the NUL.
    ends_search,
    // The file was named: the first match or line of context in a binary file, or with a NUL, is
    // not printed, but ends the search, and the output says that the file matches.
    ends_output,
};

inline constexpr std::uint64_t kLookedAtForNul = 64 << 10;  // at the beginning of a file

class FileWalker {
  public:
    // If looks_for_nul, a line with a NUL is hidden, and those after it; see hide_from.
    FileWalker(const SearchOptions& options, LineSink& sink, std::string_view path,
               bool looks_for_nul)
        : options_(options), sink_(sink), path_(path), looks_for_nul_(looks_for_nul) {}

    // Also adds what is passed on to a record, which must outlive this.
    void record(ContentRecord& record) { record_ = &record; }

    // Ends a file that was not read, of which so many lines match. Only for outputs without lines.
    void finish_counted(std::uint64_t num_lines, std::uint64_t num_bytes);

    // Passes on what was found in another file with the same content, and ends the file.
    void repeat(const ContentRecord& record);

    // From a file offset on, lines are not printed as text. The first one that would be printed
    // ends the search. The NUL is why.
    void hide_from(std::uint64_t file_offset, std::uint64_t nul_offset) {
        hidden_from_ = file_offset;
        nul_offset_ = nul_offset;
    }

    // Takes the matched ranges of a window, whose first `num_old` bytes are the end of the window
    // before, for context. file_offset is that of the window. num_lines is how many line feeds the
    // rest of the window has, if that is known.
    void walk(std::string_view window, std::size_t num_old, std::uint64_t file_offset,
              std::span<const LineRange> ranges, MatchSession& session, bool is_last,
              std::optional<std::uint64_t> num_lines = std::nullopt);

    // Passes over text between two beginnings of lines, which has so many line feeds, and nothing
    // of interest. The offsets are those of the file, as for `walk`.
    void skip(std::uint64_t from, std::uint64_t to, std::uint64_t num_lines);
    // Whether the next lines are context after a match.
    bool is_in_context() const { return after_left_ != 0; }

    // Ends the file. end_offset is that of the NUL at which the text ends, if there is one.
    void finish(std::optional<std::uint64_t> end_offset);

    // How many more ranges of lines are of interest: those that --max-count allows, and those that
    // may be in the context after the last of them.
    std::uint64_t num_wanted() const;
    // Whether nothing after the last window is of interest, not even as context.
    bool is_done() const { return is_stopped_ || (num_allowed() == 0 && after_left_ == 0); }
    // How much of the end of a window the next window needs again.
    std::size_t num_kept(std::string_view window) const;

    const FileCounts& counts() const { return counts_; }

  private:
    std::uint64_t num_allowed() const;
    void begin_file();
    void add_after(std::size_t until);
    void add_before(const LineRange& range);
    bool add_match(const LineRange& range);
    void pass_on(ContentRecord::Kind kind, const FoundLines* lines);
    void end_file();
    void add_context(const Line& line);
    bool stops_at(const LineRange& range);
    FoundLines found(const LineRange& range, bool has_matches);
    std::uint64_t line_number(std::size_t position);

    const SearchOptions& options_;
    LineSink& sink_;
    const std::string_view path_;
    const bool looks_for_nul_;
    std::optional<std::uint64_t> hidden_from_, nul_offset_;
    bool is_past_nul_ = false;  // a line was hidden, or would be if lines were printed as text
    bool is_stopped_ = false;   // at a hidden line
    FileCounts counts_;
    ContentRecord* record_ = nullptr;
    Matches matches_;
    ReplacedText replaced_;
    bool has_begun_ = false;
    std::size_t after_left_ = 0;
    std::uint64_t shown_end_ = 0;   // file offset after the last line that was passed on
    std::uint64_t passed_end_ = 0;  // file offset after the last line that was looked at
    MatchSession* session_ = nullptr;
    std::string_view window_;
    std::uint64_t window_offset_ = 0;
    std::uint64_t counted_to_ = 0;  // file offset up to which lines were counted
    std::uint64_t num_lines_ = 0;   // before counted_to_
    // Of a line before counted_to_: its file offset and its number, or 0 if there was none.
    std::uint64_t last_context_ = 0, context_number_ = 0;
};

}  // namespace gompfs::search

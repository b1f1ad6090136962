// Searches lines that were made; see window_search.h.
#include "search/window_search.h"

namespace gompfs::search {

bool can_search_windows(const SearchOptions& options) {
    return !options.invert_match && !options.is_multi_line && !options.has_context() &&
           options.encoding == nullptr;
}

FileCounts search_windows(const SearchOptions& options, MatchSession& session, LineSink& sink,
                          std::string_view path, const FileWindows& file, std::uint64_t size,
                          ContentRecord* record) {
    FileWalker walker(options, sink, path, false);
    if (record != nullptr) {
        walker.record(*record);
    }
    std::uint64_t offset = 0, num_line_feeds = 0;
    LineRanges ranges;
    for (const FileWindows::Window& window : file.windows()) {
        if (walker.is_done()) {
            break;
        }
        const auto walk = [&] {
            const std::size_t num_in_window =
                options.has_line_numbers() ? count_newlines(window.text) : 0;
            walker.skip(offset, window.file_offset, window.num_line_feeds - num_line_feeds);
            walker.walk(window.text, 0, window.file_offset, ranges, session, false, num_in_window);
            offset = window.file_offset + window.text.size();
            num_line_feeds = window.num_line_feeds + num_in_window;
        };
        ranges.clear();
        session.prepare(window.text);
        try {
            find_ranges(session, false, false, window.text, 0, window.text.size(),
                        walker.num_wanted(), ranges);
        } catch (const SearchError&) {
            walk();
            throw;
        }
        walk();
    }
    walker.skip(offset, size, 0);
    walker.finish(std::nullopt);
    return walker.counts();
}

}  // namespace gompfs::search

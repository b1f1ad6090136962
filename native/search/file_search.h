// Searches one file: one that is in memory, or a large one that is read a window at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/binary_rule.h"
#include "search/encoding.h"
#include "search/file_walker.h"
#include "search/matcher.h"
#include "search/scanned_blocks.h"
#include "search/search_options.h"

namespace gompfs::search {

// What a NUL means in a file that was named, or found in a directory.
NulMeaning nul_meaning(const SearchOptions& options, bool is_named);

// Searches a file whose bytes are in memory. Returns what was found.
FileCounts search_file(const SearchOptions& options, NulMeaning meaning, MatchSession& session,
                       LineSink& sink, std::string_view path, std::string_view bytes);

// Searches a file that is too large to be in memory at once. The lines of a window are searched on
// several threads.
class LargeFileSearch {
  public:
    // Reads [offset, offset + size) of the file, which it has, and appends it to the text.
    using Read = std::function<void(std::uint64_t offset, std::size_t size, std::string& text)>;

    // With `scanned`, ranges without matches are not read.
    LargeFileSearch(const SearchOptions& options, NulMeaning meaning, const Matcher& matcher,
                    LineSink& sink, std::string path, std::uint64_t size, Read read,
                    unsigned num_threads, std::optional<ScannedFile> scanned = std::nullopt);

    // Searches the next window. Returns false after the last one. Throws SearchError if a line is
    // too long, and what `read` and the sink throw.
    bool search_window();

    const FileCounts& counts() const { return walker_.counts(); }

  private:
    bool can_skip(const ScannedFile& scanned) const;
    void skip();
    void read_more();
    std::size_t find_window_end(std::size_t end, bool is_end);
    std::vector<std::vector<LineRange>> find_in_pieces(std::string_view window, std::size_t begin,
                                                       const std::vector<std::size_t>& ends);
    void search_lines(std::string_view window, bool is_last);

    const SearchOptions& options_;
    const NulMeaning meaning_;
    const Matcher& matcher_;
    const std::string path_;
    const std::uint64_t size_;
    const Read read_;
    const unsigned num_threads_;
    FileWalker walker_;
    MatchSession session_;
    BinaryRule binary_rule_;
    std::optional<std::uint64_t> nul_offset_;  // of the first NUL that was found
    std::optional<Utf16Decoder> utf16_;
    const std::optional<ScannedFile> scanned_;
    std::string text_;
    std::size_t num_old_ = 0;        // bytes of text_ that were searched already
    std::uint64_t text_offset_ = 0;  // of text_ in the decoded file
    std::uint64_t read_offset_ = 0;  // in the file
    std::uint64_t mark_size_ = 0;    // of the byte order mark of UTF-8, which text_ does not have
};

}  // namespace gompfs::search

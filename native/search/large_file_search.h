// Searches a file that is too large to be in memory at once.
//
// The file is cut into pieces. Any thread reads a piece, and searches the lines that begin and end
// in it. Then the pieces are taken in order: the line between two pieces is searched, and the lines
// that were found are passed on, with their numbers and their context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "blocks/block_source.h"
#include "blocks/file_layouts.h"
#include "blocks/read_failure.h"
#include "common/bytes.h"
#include "search/file_walker.h"
#include "search/files/text_decoder.h"
#include "search/gpu/scanned_blocks.h"
#include "search/match/matcher.h"
#include "search/match/search_memory.h"
#include "search/print/search_options.h"
#include "search/text_piece.h"

namespace gompfs::search {

// A read that failed.
struct ReadFailed {
    ReadFailure failure;
};

class LargeFileSearch {
  public:
    // Reads the bytes of the file from an offset on into memory. Any thread may call it.
    using Read = std::function<ReadFailure(std::uint64_t offset, MutableBytes out)>;

    struct File {
        std::string path;
        LayoutView layout;
        NulMeaning meaning;
        std::uint64_t block_size;
        std::optional<ScannedFile> scanned;  // ranges without matches are not read
        ContentRecord* record = nullptr;     // of what is found, if it is to be remembered
    };

    // For a search that is not a multi-line one. All but `file` must outlive this. Throws what
    // `read` throws.
    LargeFileSearch(const SearchOptions& options, const Matcher& matcher, LineSink& sink,
                    PieceMemory& memory, File file, Read read);

    // The next piece of the file: nullptr after the last one, and when the search has ended.
    std::unique_ptr<TextPiece> next_piece();

    // Reads and searches a piece. Any number of threads may call this. Errors wait in the piece,
    // except for Cancelled.
    void search(TextPiece& piece, MatchSession& session) const;

    // Takes the pieces in order. Throws SearchError, ReadFailed, and what `read` and the sink
    // throw.
    void take(std::unique_ptr<TextPiece> piece);

    // Ends the search before all pieces were taken.
    void stop() { has_ended_ = true; }
    bool has_ended() const { return has_ended_; }

    const FileCounts& counts() const { return walker_.counts(); }

  private:
    // Text that was not taken yet, after some that was, for context. Offsets are those in the text.
    struct Window {
        std::string_view text;
        std::size_t begin, end;  // of the piece's whole lines, which were searched
        std::size_t complete;    // the end of the last whole line; 0 if no line ends in the piece
    };

    bool can_skip(const ScannedFile& scanned) const;
    bool is_decoded() const { return decoder_.has_value(); }
    FileEncoding find_encoding() const;
    void put_together(TextPiece& piece);
    void search_window(TextPiece& piece, const Window& window);
    void skip_to(const TextPiece& piece);
    void note_nul(std::uint64_t from, std::size_t position);
    Window add(TextPiece& piece);
    Window add_decoded(const TextPiece& piece);
    std::size_t find_end(const Window& window);
    void search_lines(std::string_view text, std::size_t from, bool is_last);
    void walk(std::string_view text, std::size_t from, LineRanges& ranges, bool is_last,
              std::optional<std::uint64_t> num_lines);
    void keep(std::string_view text, std::size_t end);
    void reserve_text(std::size_t size);

    const SearchOptions& options_;
    const Matcher& matcher_;
    PieceMemory& memory_;
    const File file_;
    const Read read_;
    FileWalker walker_;
    const std::uint64_t num_wanted_;  // ranges of the file
    const bool has_holes_;
    bool looks_for_nul_ = false;
    std::uint64_t mark_size_ = 0;  // of the byte order mark, which the text does not have
    std::uint64_t piece_size_;
    std::vector<FileRange> ranges_;  // to be read
    std::size_t next_range_ = 0;
    std::uint64_t next_begin_ = 0;  // of the next piece in its range
    std::atomic<bool> has_ended_{false};

    // Of the pieces that were taken.
    std::optional<TextDecoder> decoder_;
    MatchSession session_, session_between_;   // for lines that are printed, and for those between
    std::optional<std::uint64_t> first_nul_;   // in the decoded file
    std::optional<std::uint64_t> nul_offset_;  // of the NUL that ends the search, or the output
    std::string text_;                         // from before the next piece
    TakenMemory text_memory_;
    std::size_t num_old_ = 0;        // bytes of text_ that were searched already
    std::size_t num_kept_ = 0;       // as much of it was context when that was looked for
    std::uint64_t text_offset_ = 0;  // of text_ in the decoded file
    std::uint64_t end_offset_ = 0;   // of the last piece in the file
};

}  // namespace gompfs::search

// Makes the text of those lines of a part that match, and of no others.
//
// PartLines tells in which symbols matching lines end. A window is the text from the line feed
// before such a line to the last line feed in that symbol: one line, or a few of which some match.
// To begin at the right symbol, those of the line that has not ended are kept from one block to the
// next. Offsets and line feeds are added up to where windows begin, and only in pieces with
// windows.
//
// A file may continue in the next part. So the beginning of the part up to its first line feed, and
// what comes after its last one, are made too: together with the parts next to it, they are lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"
#include "search/grammar/part_effects.h"

namespace gompfs::search {

// The windows of a part.
struct PartWindows {
    struct Window {
        std::uint32_t text_begin;      // in `text`; it ends where the next window begins
        std::uint32_t position;        // in the text of the part
        std::uint32_t num_line_feeds;  // before it in its piece
    };
    // A piece of a file in the part.
    struct Piece {
        std::uint32_t begin;         // in the text of the part
        std::uint32_t first_window;  // it has those up to the first one of the next piece
        bool is_decided;             // whether the windows are known to be all of it that matters
    };

    std::string_view text_of(std::size_t window) const {
        const std::size_t begin = windows[window].text_begin;
        const bool is_last = window + 1 == windows.size();
        return std::string_view(text).substr(
            begin, is_last ? std::string::npos : windows[window + 1].text_begin - begin);
    }
    std::size_t windows_end(std::size_t piece) const {
        return piece + 1 == pieces.size() ? windows.size() : pieces[piece + 1].first_window;
    }
    std::size_t num_bytes() const {
        return sizeof *this + text.capacity() + pieces.capacity() * sizeof(Piece) +
               windows.capacity() * sizeof(Window) + tail.capacity();
    }

    std::string text;
    std::vector<Window> windows;
    std::vector<Piece> pieces;
    std::uint64_t size = 0;  // of the text of the part
    // The text up to the first line feed, or the end of the first piece. Nothing if that is long.
    std::optional<std::string> head;
    // If the last piece does not end with the part: what follows its last line feed.
    bool ends_with_file = false;
    std::string tail;
    std::uint32_t tail_position = 0, num_line_feeds_before_tail = 0;
};

class LineWindows {
    // Text that is put together. Keeps its memory.
    struct Text {
        LargeVector<std::uint8_t> bytes;
        std::size_t size = 0;

        // kChunkSize bytes after what is appended can be read.
        void append(Bytes more);
        std::string_view view() const {
            return {reinterpret_cast<const char*>(bytes.data()), size};
        }
    };

  public:
    // `counts_line_feeds`: whether line numbers are wanted.
    LineWindows(PartEffects& effects, bool counts_line_feeds)
        : effects_(effects), counts_line_feeds_(counts_line_feeds) {}

    // Begins a part.
    void begin();
    // Takes the next symbols of the part, those of a block. The facts are those of the symbols, and
    // before them of the one before.
    void begin_block(std::span<const std::uint32_t> ranks, const Facts* facts);
    // Adds the lines that end in a symbol of the block. Returns false if there is too much text.
    bool add_lines(std::size_t index);
    // Ends a piece at a splitter of the block, and at an offset in the part. `has_last`: whether
    // its last line matches, which has no line feed. Returns false if there is too much text, or
    // too many pieces.
    bool end_piece(std::size_t index, std::uint64_t end, bool has_last, bool is_decided);
    // Ends a block. Returns false if a line is too long.
    bool end_block();
    // Ends the part. `is_decided`: of the piece that does not end in it, if there is one.
    // Returns nothing if there is too much text.
    std::optional<PartWindows> finish(std::uint64_t size, bool ends_with_file, bool is_decided);

    // Whether so many lines match that decoding the last part takes less time.
    bool is_dense() const { return is_dense_; }

  private:
    struct Start {
        std::uint64_t position, num_line_feeds;
    };

    std::size_t line_begin(std::size_t index) const;
    void count_to(std::size_t index);
    bool expand(std::size_t first, std::size_t end, Text& text);
    std::optional<Start> expand_line(std::size_t index, std::size_t end, Text& text);
    bool add(std::size_t index, std::size_t end);
    void begin_piece(std::size_t index);
    void find_head();
    void end_windows(bool is_decided);
    Facts fact(std::size_t index) const { return facts_[index + 1]; }

    PartEffects& effects_;
    const bool counts_line_feeds_;
    bool is_dense_ = false, is_first_block_ = true;
    PartWindows found_;  // but for its text
    Text text_, line_;
    // The symbols from the last line feed before the block on, or from where the piece begins, and
    // their facts, after those of the symbol before.
    std::vector<std::uint32_t> ranks_;
    std::vector<Facts> facts_;
    std::size_t block_ = 0;        // the index of the block's first symbol
    std::size_t piece_ = 0;        // of the first symbol that is there of the piece
    bool is_piece_begun_ = false;  // whether the first symbol of the piece was there
    std::size_t counted_to_ = 0;   // the index up to which these are sums:
    std::uint64_t position_ = 0, num_line_feeds_ = 0;
    std::uint64_t windows_end_ = 0;  // the position after the last window
};

}  // namespace gompfs::search

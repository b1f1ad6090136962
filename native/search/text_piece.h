// A piece of a large file, which any thread reads and searches before it is put together with its
// neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>

#include "blocks/read_failure.h"
#include "common/large_vector.h"
#include "common/spares.h"
#include "search/match/line_ranges.h"

namespace gompfs::search {

// Memory for the text of pieces, all of one size.
using PieceMemory = Spares<LargeVector<char>>;

struct TextPiece {
    // Space before the text, for the end of the piece before it.
    static constexpr std::size_t kSpaceBefore = 64 << 10;

    // Set when the piece is made.
    std::uint64_t begin = 0;  // in the file
    std::size_t size = 0;
    bool begins_line = false;          // the text does
    bool ends_file = false;            // the file ends with the text
    bool is_last = false;              // there is no other piece
    std::uint64_t num_lines_before{};  // line feeds between the piece before it and this one

    // Set when it is read and searched. Offsets are those in its text.
    std::unique_ptr<LargeVector<char>> memory;
    ReadFailure failure;
    std::exception_ptr error;
    std::size_t nul = std::string_view::npos;  // the first one, if it is of interest
    std::size_t body = 0, body_end = 0;        // whole lines
    std::uint64_t num_lines = 0;               // line feeds in the body, if they are of interest
    LineRanges ranges;                         // in the body

    char* data() { return memory->data() + kSpaceBefore; }
    std::string_view text() const { return {memory->data() + kSpaceBefore, size}; }
    // The memory that it takes.
    std::size_t num_bytes() const {
        const std::size_t num_text_bytes = memory ? memory->size() : kSpaceBefore + size;
        return num_text_bytes + ranges.capacity() * sizeof(LineRange);
    }
};

}  // namespace gompfs::search

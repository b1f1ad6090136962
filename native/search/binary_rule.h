// How much of a file with a NUL is searched.
//
// ripgrep reads a file 64 KiB at a time, and stops when a NUL is in what it has just read: lines in
// earlier reads have been searched. To print the same lines, this computes where each of its reads
// would end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gompfs::search {

// What a NUL in a file means.
enum class NulMeaning {
    none,
    ends_search,
    // NULs are ends of lines (--binary). The first match or line of context in what is read after
    // the NUL was found is not printed, but ends the search, and the output says that the file
    // matches.
    ends_line,
    // As ends_line, but NULs do not end lines: the file was named, and ripgrep has all of it in
    // memory. The NUL is found in the first 64 KiB, or in a line that would be printed.
    ends_output,
};

class BinaryRule {
  public:
    // Takes the next piece of the file: `text`, from file_offset to the end of a line or of the
    // file. nul_offset is that of the first NUL of the file, if it is in this piece or soon after
    // it. Returns the file offset up to which lines are searched if the NUL ends the search there.
    std::optional<std::uint64_t> advance(std::string_view text, std::uint64_t file_offset,
                                         bool is_end, std::optional<std::uint64_t> nul_offset) {
        const std::uint64_t text_end = file_offset + text.size();
        for (;;) {
            if (end_ - begin_ == capacity_) {
                capacity_ *= 2;
            }
            // The first read looks for a byte order mark.
            const std::uint64_t size = end_ == 0 ? 3 : capacity_ - (end_ - begin_);
            const std::uint64_t next_end = std::min(end_ + size, text_end);
            if (nul_offset && *nul_offset < end_ + size) {
                return begin_;
            }
            if (next_end == end_ || (next_end == text_end && !is_end && next_end < end_ + size)) {
                return std::nullopt;
            }
            const std::uint64_t from = std::max(end_, file_offset);
            const std::string_view read = text.substr(from - file_offset, next_end - from);
            if (const std::size_t newline = read.rfind('\n'); newline != read.npos) {
                begin_ = from + newline + 1;
            } else if (from != end_) {
                begin_ = from;  // the text before this one ended with a line
            }
            end_ = next_end;
        }
    }

  private:
    std::uint64_t begin_ = 0;  // of the line that was not complete in the last read
    std::uint64_t end_ = 0;    // of the last read
    std::uint64_t capacity_ = 64 << 10;
};

}  // namespace gompfs::search

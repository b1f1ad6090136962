// What a scan of the archive's blocks on a GPU has found (kernels/search), and what follows from
// it: which files need not be searched, and which ranges of large files.
//
// Each match of a file is in a line that has a byte in a block that may have matches. So a file
// without such blocks has no matches. In other files, lines outside of such blocks are skipped; the
// scan has counted these lines.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blocks/file_layouts.h"

namespace gompfs::search {

// A range of a file that is read, with the number of line feeds between it and the range before it.
struct FileRange {
    std::uint64_t begin, end;
    std::uint64_t num_lines_before;
};

// The blocks of a large file, in order. The offsets are those of the file.
class ScannedFile {
  public:
    struct Block {
        std::uint64_t begin, end;
        bool may_match, has_nul;
        std::uint32_t num_lines;  // line feeds
        std::uint32_t last_line;  // offset in the block after the last line feed, or 0
    };

    explicit ScannedFile(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}

    bool has_nul() const;

    // Returns the ranges to read to find all matches, with num_before lines of context before each
    // match and num_after lines after it. A range begins with a line.
    std::vector<FileRange> ranges(std::size_t num_before, std::size_t num_after) const;

  private:
    struct Position {
        std::size_t block;
        std::uint32_t offset;
    };

    Position begin_before(std::size_t block, std::size_t num_before) const;
    std::size_t end_after(std::size_t block, std::size_t num_after) const;

    std::vector<Block> blocks_;
};

class ScannedBlocks {
  public:
    // Columns by block of the stream.
    struct Columns {
        std::span<const std::uint32_t> sizes;  // uncompressed
        std::span<const std::uint8_t> may_match;
        std::span<const std::uint8_t> has_nul;
        std::span<const std::uint32_t> num_lines;  // line feeds; of all blocks, or of none
        std::span<const std::uint32_t> last_lines;
    };

    // Columns must have the same size, and outlive this.
    ScannedBlocks(Columns columns, std::uint64_t block_size)
        : columns_(columns), block_size_(block_size) {}

    // Whether a file may have a match.
    bool may_match(const LayoutView& file) const;

    // Returns the columns of the blocks of a file, or nothing if the file has holes or is not in
    // successive blocks.
    std::optional<ScannedFile> blocks_of(const LayoutView& file) const;

  private:
    bool is_in_succession(const LayoutView& file) const;
    template <typename Take>
    void for_each_block(const LayoutView& file, const Take& take) const;

    const Columns columns_;
    const std::uint64_t block_size_;
};

}  // namespace gompfs::search

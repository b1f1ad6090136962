// A plan for reading many ranges of files: their pieces of blocks, and the offsets in one output.
//
// The output has the ranges one after another. A range is cut at the borders of blocks and holes
// into pieces, each of which lies in one block. Pieces are sorted by block, so that a reader
// decodes each block once, however many ranges it has bytes of, and may work on any part of the
// blocks alone. Bytes of the output that belong to no piece are in holes, and are zeros.
//
// A plan is made in two steps, because pieces take memory in proportion to the output: the caller
// allocates the output after the first step, so that an impossible size fails there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "blocks/block_pieces.h"
#include "blocks/file_layouts.h"
#include "blocks/read_failure.h"

namespace gompfs {

// Bytes [begin, end) of a file; those after its end do not exist.
struct FileRange {
    std::uint64_t ino, begin, end;
};

// Bytes [target, target + size) of an output.
struct OutputRange {
    std::uint64_t target, size;
};

class RangePlan {
  public:
    // Finds a file; see BlockReader::find_file.
    using FindFile =
        std::function<ReadFailure(std::uint64_t ino, std::shared_ptr<const FileLayout>& file)>;

    // Finds the files of ranges, in a stream of num_blocks blocks. If one cannot be found,
    // `failure` says why and failed_range() is its range. Throws what find_file throws, and
    // std::invalid_argument if the output would have 2^63 bytes or more.
    RangePlan(std::uint64_t num_blocks, std::uint64_t block_size, const FindFile& find_file,
              std::span<const FileRange> ranges, ReadFailure& failure);

    // Finds the pieces. Returns the failure of the first range that lies outside the stream. Throws
    // std::bad_alloc if pieces and holes need more than `memory` bytes: files that claim extents of
    // single bytes have far more of them than an output of the same size usually has. Then it may
    // be called again.
    ReadFailure locate(std::uint64_t memory);

    std::size_t size() const { return ranges_.size(); }
    std::size_t failed_range() const { return failed_range_; }

    // The offset of each range in the output, and the size of the output.
    const std::vector<std::int64_t>& offsets() const { return offsets_; }

    // The different blocks of all pieces, ascending.
    const std::vector<std::uint64_t>& blocks() const { return blocks_; }

    // For each block, the number of its first piece; then the number of pieces.
    const std::vector<std::uint32_t>& first_pieces() const { return first_pieces_; }

    // For each piece: its offset in its block, its size, and its offset in the output.
    const std::vector<std::uint32_t>& begins() const { return begins_; }
    const std::vector<std::uint32_t>& sizes() const { return sizes_; }
    const std::vector<std::uint64_t>& targets() const { return targets_; }

    BlockPieces pieces() const { return {first_pieces_, begins_, sizes_, targets_}; }

    const std::vector<OutputRange>& holes() const { return holes_; }

    // Returns the first block with a piece that ends after the end of the block: an extent crosses
    // the end of a segment. `sizes` has the uncompressed size of each block of the stream.
    std::optional<std::uint64_t> overrun_block(std::span<const std::uint32_t> sizes) const;

    // The first range that has bytes of a block of the plan.
    std::size_t range_of(std::uint64_t block) const;

  private:
    struct Piece {
        std::uint64_t block;
        std::uint32_t begin, size;
        std::uint64_t target;
        std::uint32_t range;
    };

    void cut(std::uint32_t range, std::uint64_t stream_offset, std::uint64_t size,
             std::uint64_t target, std::vector<Piece>& pieces) const;
    void store(std::vector<Piece>& pieces);

    const std::uint64_t block_size_, num_blocks_;
    std::vector<FileRange> ranges_;
    std::vector<std::uint32_t> order_;  // of the ranges, by inode number
    std::vector<std::shared_ptr<const FileLayout>> files_;
    std::size_t failed_range_ = 0;
    std::vector<std::int64_t> offsets_;
    std::vector<std::uint64_t> blocks_, targets_;
    std::vector<std::uint32_t> first_pieces_, begins_, sizes_, ranges_of_pieces_;
    std::vector<OutputRange> holes_;
};

}  // namespace gompfs

// The arrays that kernels need to read some blocks of a plan, written to one memory in one pass.
//
// These blocks are a slice. The ones that the device decodes come first, grouped by codec: their
// contents are laid out one after another in memory of the device, from where their pieces are
// copied to the output. Or they are decoded in place: each block is one piece, and its content goes
// to the target of that piece. The others are stored or damaged. In every array of blocks, and in
// the numbers of blocks that pieces have, they are in this order. Pieces are grouped by block in
// the same order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "blocks/block_pieces.h"
#include "codec/block_batch.h"
#include "codec/codec.h"
#include "common/bytes.h"

namespace gompfs {

// The blocks of a slice. Each has a value in every array.
struct SliceBlocks {
    std::span<const std::int64_t> indexes;  // in the plan
    std::span<const BlockFacts> facts;
    std::span<const std::uint8_t> head_statuses;  // a BlockStatus of what it needs to be decoded
    std::span<const std::uint64_t> heads;         // the address of that, or 0
    std::span<const std::uint64_t> payloads;      // the addresses of the payloads
};

class SliceColumns {
  public:
    static constexpr std::size_t kNumCodecs =
        static_cast<std::size_t>(Codec::gompresso_bit_dictionary) + 1;

    enum Column : std::size_t {
        tasks,        // of decoded blocks, five numbers of 64 bits each; see write_tasks
        sources,      // the address of each block's content
        statuses,     // a BlockStatus: that of what the block needs, unless that is ok
        block_sizes,  // uncompressed
        checksums,    // of contents
        of_blocks,    // the block of each piece
        begins,       // of pieces in their blocks
        sizes,        // of pieces
        targets,      // of pieces in the output
        num_columns
    };

    // Lays out the columns. The arrays must live as long as this object. Throws
    // std::invalid_argument if an index or a codec does not exist, and if blocks of several pieces,
    // or with targets that are no multiples of 32, should be decoded in place.
    SliceColumns(const BlockPieces& pieces, const SliceBlocks& blocks, bool in_place);

    // The begin and end of each column, at multiples of 16; the last one ends at size().
    std::pair<std::size_t, std::size_t> bounds(std::size_t column) const {
        return {begins_.at(column), begins_.at(column) + num_bytes_.at(column)};
    }
    std::size_t size() const { return begins_.back() + num_bytes_.back(); }

    // The memory that the contents of the decoded blocks need; 0 if they are decoded in place.
    std::uint64_t content_size() const { return content_size_; }

    // How many blocks of each codec are decoded.
    const std::array<std::uint32_t, kNumCodecs>& num_decoded() const { return num_decoded_; }

    std::size_t num_pieces() const { return num_pieces_; }

    // Whether the checksum of any block's content is known.
    bool has_checksums() const { return has_checksums_; }

    // The indexes of the blocks in the plan, in the order of the columns.
    std::vector<std::int64_t> indexes() const;

    // Writes the columns to `out`, which has size() bytes. The contents of the decoded blocks will
    // be at the device address `content`, a multiple of 32. The memory for the output begins at the
    // target `base`; blocks that are decoded in place are decoded to it, and `content` is its
    // address.
    void write(MutableBytes out, std::uint64_t content, std::uint64_t base) const;

  private:
    template <typename Value>
    std::span<Value> column(MutableBytes out, Column number) const;
    void write_tasks(MutableBytes out, std::uint64_t content, std::uint64_t base) const;
    void write_blocks(MutableBytes out) const;
    void write_pieces(MutableBytes out, std::uint64_t base) const;
    std::size_t first_piece(std::size_t block) const;

    const BlockPieces pieces_;
    const SliceBlocks blocks_;
    const bool in_place_;
    std::vector<std::uint8_t> statuses_;
    std::vector<std::uint32_t> order_;  // of the blocks
    std::array<std::uint32_t, kNumCodecs> num_decoded_{};
    std::size_t total_decoded_ = 0;
    std::size_t num_pieces_ = 0;
    std::uint64_t content_size_ = 0;
    bool has_checksums_ = false;
    std::array<std::size_t, num_columns> begins_{}, num_bytes_{};
};

}  // namespace gompfs

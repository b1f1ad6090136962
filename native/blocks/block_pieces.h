// Which pieces of blocks go where in an output.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gompfs {

// The pieces of some blocks, grouped by block. Views of columns.
struct BlockPieces {
    // For each block, the number of its first piece; then the number of pieces.
    std::span<const std::uint32_t> first_pieces;
    // For each piece: its offset in its block, its size, and its offset in the output.
    std::span<const std::uint32_t> begins, sizes;
    std::span<const std::uint64_t> targets;
};

// Blocks that are one piece each.
class WholeBlocks {
  public:
    // Throws std::invalid_argument unless each block has a size and a target.
    WholeBlocks(std::vector<std::uint32_t> sizes, std::vector<std::uint64_t> targets)
        : first_pieces_(sizes.size() + 1),
          begins_(sizes.size()),
          sizes_(std::move(sizes)),
          targets_(std::move(targets)) {
        if (sizes_.size() != targets_.size()) {
            throw std::invalid_argument("each block needs a size and a target");
        }
        std::iota(first_pieces_.begin(), first_pieces_.end(), 0u);
    }

    BlockPieces pieces() const { return {first_pieces_, begins_, sizes_, targets_}; }

  private:
    std::vector<std::uint32_t> first_pieces_, begins_, sizes_;
    std::vector<std::uint64_t> targets_;
};

}  // namespace gompfs

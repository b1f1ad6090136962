// Links from each position of a block to the previous position with the same hash.
//
// All links are made before parsing, so they depend on the block alone. Following them from any
// position gives its earlier candidates for a match, nearest first. Positions are 16 bits wide in
// blocks of up to 64 KiB, so that links and tables stay in the second-level cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "codec/parse/match_length.h"
#include "common/bytes.h"

namespace gompfs {

// No position: the last one of the largest block, which has no four bytes to hash.
template <typename Position>
constexpr Position kNoLink = std::numeric_limits<Position>::max();

// A chain for each hash: the last position with it, and for each position the previous one.
template <typename Position>
class PositionLinks {
  public:
    // The previous position with the same hash; kNoLink if there is none, or if fewer than
    // kHashedLength bytes follow the position.
    Position operator[](std::size_t position) const { return previous_[position]; }

    // The last position that was added with a hash.
    Position last(std::uint32_t hash) const { return last_[hash]; }

    // Makes `num_hashes` empty chains for a block.
    void start(std::size_t block_size, std::size_t num_hashes) {
        last_.assign(num_hashes, kNoLink<Position>);
        previous_.resize(block_size);
        const std::size_t num_unlinked = std::min<std::size_t>(block_size, kHashedLength - 1);
        std::fill(previous_.end() - static_cast<std::ptrdiff_t>(num_unlinked), previous_.end(),
                  kNoLink<Position>);
    }

    void add(std::size_t position, std::uint32_t hash) {
        previous_[position] = last_[hash];
        last_[hash] = static_cast<Position>(position);
    }

    // Gives the position no link. No other position is linked to it.
    void leave_out(std::size_t position) { previous_[position] = kNoLink<Position>; }

  private:
    std::vector<Position> last_;
    std::vector<Position> previous_;
};

// The number of positions of a block that can be linked.
inline std::size_t num_linked(Bytes content) {
    return content.size() - std::min<std::size_t>(content.size(), kHashedLength - 1);
}

// Links positions with the same four bytes.
template <int kBits, typename Position>
void link_four_bytes(Bytes content, PositionLinks<Position>& links) {
    links.start(content.size(), std::size_t{1} << kBits);
    for (std::size_t position = 0; position < num_linked(content); ++position) {
        links.add(position, hash4<kBits>(content.data() + position));
    }
}

// Links positions with the same four bytes, and those with the same three, which is faster than one
// after the other.
template <int kBits, int kShortBits, typename Position>
void link_four_and_three_bytes(Bytes content, PositionLinks<Position>& links,
                               PositionLinks<Position>& short_links) {
    links.start(content.size(), std::size_t{1} << kBits);
    short_links.start(content.size(), std::size_t{1} << kShortBits);
    for (std::size_t position = 0; position < num_linked(content); ++position) {
        links.add(position, hash4<kBits>(content.data() + position));
        short_links.add(position, hash3<kShortBits>(content.data() + position));
    }
}

// Links positions with the same four bytes and the same byte before. The first four positions are
// not linked.
template <int kBits, typename Position>
void link_five_bytes(Bytes content, PositionLinks<Position>& links) {
    links.start(content.size(), std::size_t{1} << kBits);
    const std::size_t num_unlinked = std::min<std::size_t>(content.size(), kHashedLength);
    for (std::size_t position = 0; position < num_unlinked; ++position) {
        links.leave_out(position);
    }
    for (std::size_t position = num_unlinked; position < num_linked(content); ++position) {
        links.add(position, hash5<kBits>(content.data() + position - 1));
    }
}

}  // namespace gompfs

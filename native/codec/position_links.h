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

#include "codec/codec.h"
#include "codec/match_length.h"

namespace gompfs {

// No position: the last one of the largest block, which has no four bytes to hash.
template <typename Position>
constexpr Position kNoLink = std::numeric_limits<Position>::max();

// The largest block whose positions are 16 bits wide.
constexpr std::size_t kMaxNarrowBlock = std::size_t{1} << 16;

// Links all positions of `content` that are followed by kHashedLength bytes; the others have no
// link. `head` is a table for the work, with an entry for each hash.
template <int kBits, typename Position, typename Hash>
void link_positions(Bytes content, Hash&& hash, std::vector<Position>& head,
                    std::vector<Position>& previous) {
    head.assign(std::size_t{1} << kBits, kNoLink<Position>);
    previous.resize(content.size());
    const std::size_t num_linked = content.size() - std::min(content.size(), kHashedLength - 1);
    Position* const heads = head.data();
    Position* const links = previous.data();
    for (std::size_t position = 0; position < num_linked; ++position) {
        Position& last = heads[hash(content.data() + position)];
        links[position] = last;
        last = static_cast<Position>(position);
    }
    std::fill(previous.begin() + static_cast<std::ptrdiff_t>(num_linked), previous.end(),
              kNoLink<Position>);
}

}  // namespace gompfs

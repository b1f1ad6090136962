// Columns of facts about blocks that the index leaves out, because they follow
// from other columns.
//
// The blocks of a segment lie one after another in the archive, so their offsets follow from the
// offset of the first block and from the compressed sizes. All blocks of a part have the block size
// except the last one, so the uncompressed sizes follow from the sizes of the parts. The index is
// untrusted input: no sum may wrap, and no column may be longer than the one that the index stores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gompfs {

// Blocks begin at multiples of this (gompfs.codec.BLOCK_ALIGNMENT).
inline constexpr std::uint64_t kBlockAlignment = 16;

// Returns the archive offset of each block: the first begins at archive_offset, each of the others
// at the first multiple of 16 after the one before. Throws std::invalid_argument if archive_offset
// is not a multiple of 16, or if a block ends after data_end.
std::vector<std::uint64_t> consecutive_offsets(std::uint64_t archive_offset,
                                               std::span<const std::uint32_t> compressed_sizes,
                                               std::uint64_t data_end);

// Returns the uncompressed size of each of num_blocks blocks. Throws std::invalid_argument if a
// part is empty, or if the parts need another number of blocks.
std::vector<std::uint32_t> uncompressed_sizes(std::span<const std::uint64_t> part_sizes,
                                              std::uint32_t block_size, std::uint64_t num_blocks);

}  // namespace gompfs

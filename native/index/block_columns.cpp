// Computes columns of facts about blocks; see block_columns.h.
#include "index/block_columns.h"

#include <stdexcept>

namespace gompfs {

std::vector<std::uint64_t> consecutive_offsets(std::uint64_t archive_offset,
                                               std::span<const std::uint32_t> compressed_sizes,
                                               std::uint64_t data_end) {
    if (archive_offset % kBlockAlignment != 0) {
        throw std::invalid_argument("the first block does not begin at a multiple of 16");
    }
    std::vector<std::uint64_t> offsets;
    offsets.reserve(compressed_sizes.size());
    std::uint64_t begin = archive_offset;
    for (const std::uint32_t size : compressed_sizes) {
        if (begin > data_end || size > data_end - begin) {
            throw std::invalid_argument("a block ends after the data");
        }
        offsets.push_back(begin);
        begin += (std::uint64_t{size} + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
    }
    return offsets;
}

std::vector<std::uint32_t> uncompressed_sizes(std::span<const std::uint64_t> part_sizes,
                                              std::uint32_t block_size, std::uint64_t num_blocks) {
    std::vector<std::uint32_t> sizes;
    sizes.reserve(num_blocks);
    for (const std::uint64_t part_size : part_sizes) {
        if (part_size == 0) {
            throw std::invalid_argument("a part is empty");
        }
        const std::uint64_t num_whole = (part_size - 1) / block_size;
        if (num_whole >= num_blocks - sizes.size()) {
            throw std::invalid_argument("the parts need more blocks");
        }
        sizes.insert(sizes.end(), num_whole, block_size);
        sizes.push_back(static_cast<std::uint32_t>(part_size - num_whole * block_size));
    }
    if (sizes.size() != num_blocks) {
        throw std::invalid_argument("the parts need fewer blocks");
    }
    return sizes;
}

}  // namespace gompfs

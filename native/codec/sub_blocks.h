// The 32 bit streams of a payload, one for each lane of a warp, and how their sizes are written.
//
// Item i of a payload belongs to sub-block i % 32. A payload gives the size of each sub-block in
// bits as a base plus a number of fixed width, and then the sub-blocks, without gaps.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bit_stream.h"
#include "shared/format_constants.h"

namespace gompfs {

using SubBlocks = std::array<BitWriter, kNumSubBlocks>;
using SubBlockSizes = std::array<std::uint32_t, kNumSubBlocks>;  // in bits

// How the sizes of sub-blocks are written: the smallest size, then each size minus it, in `width`
// bits.
struct SizeFrame {
    std::uint32_t base;
    int width;
};

inline SubBlockSizes sizes_of(const SubBlocks& sub_blocks) {
    SubBlockSizes sizes;
    std::transform(sub_blocks.begin(), sub_blocks.end(), sizes.begin(), [](const BitWriter& bits) {
        return static_cast<std::uint32_t>(bits.num_bits());
    });
    return sizes;
}

inline SizeFrame size_frame(const SubBlockSizes& sizes) {
    const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
    return {*smallest, static_cast<int>(std::bit_width(*largest - *smallest))};
}
inline SizeFrame size_frame(const SubBlocks& sub_blocks) {
    return size_frame(sizes_of(sub_blocks));
}

inline void put_sizes(BitWriter& out, const SubBlockSizes& sizes, const SizeFrame& frame) {
    for (const std::uint32_t size : sizes) {
        out.put(size - frame.base, frame.width);
    }
}
inline void put_sizes(BitWriter& out, const SubBlocks& sub_blocks, const SizeFrame& frame) {
    put_sizes(out, sizes_of(sub_blocks), frame);
}

// The most bytes that the sizes of 32 sub-blocks take.
constexpr std::size_t kMaxSizesBytes = std::size_t{kNumSubBlocks} * kMaxSizeWidth / 8;

// The bytes that one sub-block of a payload with `num_items` items may need while it is written.
constexpr std::size_t sub_block_capacity(std::size_t num_items, int max_item_bits) {
    return (num_items / kNumSubBlocks + 1) * max_item_bits / 8 + 1 + BitWriter::kSlack;
}

// The first and last positions of the sub-blocks in a stream, in bits.
struct SubBlockBounds {
    std::array<std::uint32_t, kNumSubBlocks> starts, ends;

    // Reads the sizes at the start of a stream. Returns false if a sub-block ends after the stream,
    // or the last one does not end in the last byte.
    bool read(std::span<const std::uint8_t> stream, std::uint32_t base, int width) {
        BitReader bits(stream.data(), stream.size());
        std::uint64_t position = std::uint64_t{kNumSubBlocks} * width;
        for (int lane = 0; lane < kNumSubBlocks; ++lane) {
            starts[lane] = static_cast<std::uint32_t>(position);
            position += std::uint64_t{base} + bits.take(width);
            if (position > stream.size() * 8) {
                return false;
            }
            ends[lane] = static_cast<std::uint32_t>(position);
        }
        return (position + 7) / 8 == stream.size();
    }
};

}  // namespace gompfs

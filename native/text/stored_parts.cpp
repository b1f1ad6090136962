// Reads stored parts; see stored_parts.h. The blocks of a part follow each other in the archive, so
// they are read at once.
#include "text/stored_parts.h"

#include <span>
#include <stdexcept>
#include <utility>

#include "codec/block.h"
#include "shared/format_constants.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kMaxStoredSize = kBlockHeaderSize + kMaxHeadPayload;
constexpr std::uint64_t kMaxGap = 15;  // blocks begin at multiples of 16

void require(bool condition, const char* what) {
    if (!condition) {
        throw std::invalid_argument(what);
    }
}

}  // namespace

StoredParts::StoredParts(Columns columns, std::uint64_t block_size, Fetch fetch)
    : columns_(std::move(columns)), block_size_(block_size), fetch_(std::move(fetch)) {
    const std::size_t num_parts = columns_.sizes.size();
    require(block_size != 0 && columns_.head_offsets.size() == num_parts &&
                columns_.head_sizes.size() == num_parts &&
                columns_.first_blocks.size() == num_parts && columns_.texts.size() == num_parts &&
                columns_.block_sizes.size() == columns_.block_offsets.size(),
            "the columns of parts do not have equally many values");
    for (std::size_t part = 0; part < num_parts; ++part) {
        const std::uint64_t first = columns_.first_blocks[part];
        require(first <= columns_.block_offsets.size() &&
                    num_blocks(part) <= columns_.block_offsets.size() - first &&
                    columns_.sizes[part] != 0,
                "a part has blocks that the segment does not have");
    }
}

StoredPart StoredParts::read(std::size_t part) const {
    StoredPart stored;
    stored.size = columns_.sizes[part];
    stored.block_size = block_size_;
    stored.text = columns_.texts[part];
    if (!has_head(part)) {
        return stored;
    }
    const std::size_t first = columns_.first_blocks[part], count = num_blocks(part);
    const std::span offsets = std::span(columns_.block_offsets).subspan(first, count);
    const std::span sizes = std::span(columns_.block_sizes).subspan(first, count);
    std::uint64_t end = offsets[0];
    for (std::size_t block = 0; block < count; ++block) {
        require(sizes[block] <= kMaxStoredSize && offsets[block] >= end &&
                    offsets[block] - end <= kMaxGap,
                "a part of its text is damaged");
        end = offsets[block] + sizes[block];
    }
    stored.head = read_head(part);
    stored.bytes_of_blocks = fetch(offsets[0], end - offsets[0]);
    for (std::size_t block = 0; block < count; ++block) {
        stored.blocks.push_back(
            Bytes(stored.bytes_of_blocks).subspan(offsets[block] - offsets[0], sizes[block]));
    }
    return stored;
}

FetchedBytes StoredParts::read_head(std::size_t part) const {
    require(columns_.head_sizes[part] <= kMaxStoredSize, "a part of its text is damaged");
    return fetch(columns_.head_offsets[part], columns_.head_sizes[part]);
}

// Returns a range of the archive, with zeros after the end of the archive.
FetchedBytes StoredParts::fetch(std::uint64_t offset, std::uint64_t size) const {
    FetchedBytes bytes = fetch_(offset, size);
    bytes.resize(size);
    return bytes;
}

}  // namespace gompfs

// The parts of a segment's text as an archive stores them. Their bytes are read when they are
// needed, and freed after that: all parts together are as large as the archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/fetch.h"

namespace gompfs {

// A part: a head and blocks, or else its text. Blocks are views of the bytes that it owns.
struct StoredPart {
    FetchedBytes head, bytes_of_blocks;
    std::vector<Bytes> blocks;
    Bytes text;                    // of a part without a head
    std::uint64_t size = 0;        // of its text
    std::uint64_t block_size = 0;  // the last block may be shorter

    std::string_view plain_text() const {
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }
};

class StoredParts {
  public:
    // The positions of the parts. The blocks of part i begin with block first_blocks[i]; parts
    // without a head have a head size of 0, and a text, which must outlive the object.
    struct Columns {
        std::vector<std::uint64_t> sizes, head_offsets;
        std::vector<std::uint32_t> head_sizes;
        std::vector<std::uint64_t> first_blocks;
        std::vector<Bytes> texts;
        std::vector<std::uint64_t> block_offsets;  // of all blocks of the segment
        std::vector<std::uint32_t> block_sizes;
    };

    // Throws std::invalid_argument if the columns do not fit together.
    StoredParts(Columns columns, std::uint64_t block_size, Fetch fetch);

    std::size_t size() const { return columns_.sizes.size(); }
    bool has_head(std::size_t part) const { return columns_.head_sizes[part] != 0; }

    // Throws what `fetch` throws, and std::invalid_argument if a head or a block is larger than any
    // can be, or if the blocks of a part do not follow each other.
    StoredPart read(std::size_t part) const;
    // The block of a head alone.
    FetchedBytes read_head(std::size_t part) const;

  private:
    std::uint64_t num_blocks(std::size_t part) const {
        return (columns_.sizes[part] + block_size_ - 1) / block_size_;
    }
    FetchedBytes fetch(std::uint64_t offset, std::uint64_t size) const;

    const Columns columns_;
    const std::uint64_t block_size_;
    const Fetch fetch_;
};

}  // namespace gompfs

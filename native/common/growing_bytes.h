// Bytes that others are appended to. Those that are there already are not copied to make room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"

namespace gompfs {

class GrowingBytes {
  public:
    void push_back(std::uint8_t byte) {
        if (chunks_.empty() || chunks_.back().size == chunks_.back().capacity) {
            add_chunk();
        }
        Chunk& last = chunks_.back();
        last.bytes[last.size++] = byte;
    }

    void append(Bytes bytes) {
        while (!bytes.empty()) {
            if (chunks_.empty() || chunks_.back().size == chunks_.back().capacity) {
                add_chunk();
            }
            Chunk& last = chunks_.back();
            const std::size_t count = std::min(bytes.size(), last.capacity - last.size);
            std::copy_n(bytes.begin(), count, last.bytes.get() + last.size);
            last.size += count;
            bytes = bytes.subspan(count);
        }
    }

    std::uint64_t size() const {
        std::uint64_t size = 0;
        for (const Chunk& chunk : chunks_) {
            size += chunk.size;
        }
        return size;
    }

    // Appends the bytes to others, and frees them meanwhile: they are then empty.
    void move_to(std::vector<std::uint8_t>& out) {
        for (std::size_t index = 0; index < chunks_.size(); ++index) {
            Chunk& chunk = chunks_[index];
            out.insert(out.end(), chunk.bytes.get(), chunk.bytes.get() + chunk.size);
            chunk.bytes.reset();
            if (index % kManyChunks == kManyChunks - 1) {
                free_unused_memory();
            }
        }
        chunks_.clear();
    }

    // A position, at first that of the first byte.
    struct Cursor {
        std::size_t chunk = 0, at = 0;
    };

    bool is_at_end(const Cursor& cursor) const {
        return cursor.chunk == chunks_.size() ||
               (cursor.chunk + 1 == chunks_.size() && cursor.at == chunks_.back().size);
    }
    // Returns the next byte, which must be there.
    std::uint8_t read(Cursor& cursor) const {
        if (cursor.at == chunks_[cursor.chunk].size) {
            cursor = {cursor.chunk + 1, 0};
        }
        return chunks_[cursor.chunk].bytes[cursor.at++];
    }

  private:
    static constexpr std::size_t kFirstChunk = 256, kLargestChunk = std::size_t{1} << 20,
                                 kManyChunks = 32;

    struct Chunk {
        std::unique_ptr<std::uint8_t[]> bytes;
        std::size_t size, capacity;
    };

    void add_chunk() {
        const std::size_t capacity =
            chunks_.empty() ? kFirstChunk : std::min(2 * chunks_.back().capacity, kLargestChunk);
        chunks_.push_back(
            {std::unique_ptr<std::uint8_t[]>(new std::uint8_t[capacity]), 0, capacity});
    }

    std::vector<Chunk> chunks_;
};

}  // namespace gompfs

// Says what to decode ahead of readers. It recognises a reader by the offsets that it asks for.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "common/latest_wanted.h"
#include "reading/sequential_readers.h"
#include "reading/strided_readers.h"

namespace gompfs {

// Safe for any number of threads.
class ReadAhead {
  public:
    ReadAhead(std::uint64_t num_blocks, std::uint64_t block_size, std::uint64_t capacity)
        : block_size_(block_size),
          sequential_(num_blocks, capacity),
          strided_(num_blocks, block_size, capacity) {}

    // Keeps to a cache that has room for so many blocks from now on. What was wanted before still
    // is.
    void set_capacity(std::uint64_t capacity);

    // Takes note of a read of one byte or more; at most max_ahead blocks are worth decoding at
    // once. Returns the number of blocks to decode at once: negative for a backward reader, just
    // the blocks of this read for a strided one, 0 if no pattern was recognised.
    std::int64_t note(const StreamRead& read, std::uint64_t max_ahead);

    // Waits for blocks that should be decoded ahead; nothing once this is closed.
    std::optional<std::vector<std::uint64_t>> wait() { return wanted_.wait(); }

    void close() { wanted_.close(); }

  private:
    const std::uint64_t block_size_;
    std::mutex mutex_;
    SequentialReaders sequential_;
    StridedReaders strided_;
    LatestWanted<std::vector<std::uint64_t>> wanted_{16};
};

}  // namespace gompfs

// Decides what to decode ahead of readers. Readers are recognised by the offsets that they read,
// since the kernel does not say which open file a request belongs to.
//
// A read first goes to SequentialReaders; if that recognises nothing, to StridedReaders. The blocks
// to decode are queued for a thread of the mount that waits for them; a full queue drops its oldest
// element.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "blocks/sequential_readers.h"
#include "blocks/strided_readers.h"
#include "common/latest_wanted.h"

namespace gompfs {

// Safe for any number of threads.
class ReadAhead {
  public:
    ReadAhead(std::uint64_t num_blocks, std::uint64_t block_size, std::uint64_t capacity)
        : block_size_(block_size),
          sequential_(num_blocks, capacity),
          strided_(num_blocks, block_size, capacity) {}

    // Sets the size of the cache in blocks. Blocks requested before stay requested.
    void set_capacity(std::uint64_t capacity);

    // Reports a read of at least one byte. max_ahead is the number of blocks that are worth
    // decoding at once. Returns the number of blocks to decode at once: negative for a backward
    // reader, only the blocks of this read for a strided reader, 0 if no pattern was recognised.
    std::int64_t note(const StreamRead& read, std::uint64_t max_ahead);

    // Waits for blocks to decode ahead. Returns nothing once this is closed.
    std::optional<std::vector<std::uint64_t>> wait() { return wanted_.wait(); }

    // Whether blocks to decode ahead are waiting.
    bool has_wanted() const { return !wanted_.is_empty(); }

    void close() { wanted_.close(); }

  private:
    const std::uint64_t block_size_;
    std::mutex mutex_;
    SequentialReaders sequential_;
    StridedReaders strided_;
    LatestWanted<std::vector<std::uint64_t>> wanted_{16};
};

}  // namespace gompfs

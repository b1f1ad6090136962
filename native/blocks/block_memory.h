// Memory for decoded blocks, which is reused from block to block.
//
// Decoding into memory that the process already owns avoids a page fault per page. The memory comes
// in slabs of one large page (or one block, if that is larger) and is handed out in pieces of the
// block size. Freed pieces up to 4 MiB keep their pages and are reused first, the one freed last
// before the others, as it is most likely still in the processor's cache. The pages of other freed
// pieces go back to the system, so that the process shrinks with the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/fork.h"

namespace gompfs {

// Hands out pieces of one size. Safe for any number of threads. In the child of a fork, pieces
// taken by the parent keep their bytes and are never reused: a thread that does not exist in the
// child may hold the mutex.
class BlockMemory {
  public:
    explicit BlockMemory(std::size_t size) : size_(size) {}
    ~BlockMemory();
    BlockMemory(const BlockMemory&) = delete;
    BlockMemory& operator=(const BlockMemory&) = delete;

    // Returns a piece with undefined content. Throws std::bad_alloc.
    std::uint8_t* take();

    void give_back(std::uint8_t* piece);

  private:
    void add_slab();

    const std::size_t size_;
    const ThisProcess process_;
    std::mutex mutex_;
    std::vector<std::uint8_t*> slabs_;
    std::vector<std::uint8_t*> free_;   // with their pages; the one freed last is at the end
    std::vector<std::uint8_t*> fresh_;  // pieces without pages of their own yet
};

}  // namespace gompfs

// Memory for decoded blocks, which is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/fork.h"

namespace gompfs {

// Hands out pieces of one size. Safe for any number of threads. In a child of a fork, pieces that
// the parent took keep their bytes, and are never used again: a thread that is gone may hold the
// mutex.
class BlockMemory {
  public:
    explicit BlockMemory(std::size_t size) : size_(size) {}
    ~BlockMemory();
    BlockMemory(const BlockMemory&) = delete;
    BlockMemory& operator=(const BlockMemory&) = delete;

    // A piece of any content; throws std::bad_alloc.
    std::uint8_t* take();

    void give_back(std::uint8_t* piece);

  private:
    void add_slab();

    const std::size_t size_;
    const ThisProcess process_;
    std::mutex mutex_;
    std::vector<std::uint8_t*> slabs_;
    std::vector<std::uint8_t*> free_;   // the last of them were used last
    std::vector<std::uint8_t*> fresh_;  // of which the system has the memory
};

}  // namespace gompfs

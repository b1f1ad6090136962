// Decoded blocks that threads may read without the interpreter.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "reading/block_memory.h"

namespace gompfs {

// The bytes of a block, until nobody holds it any more.
class DecodedBlock {
  public:
    DecodedBlock(std::shared_ptr<BlockMemory> memory)
        : memory_(std::move(memory)), place_(memory_->take()) {}
    ~DecodedBlock() { memory_->give_back(place_); }
    DecodedBlock(const DecodedBlock&) = delete;
    DecodedBlock& operator=(const DecodedBlock&) = delete;

    // Where to write `size` bytes, before anybody reads them.
    std::span<std::uint8_t> resize(std::size_t size) {
        size_ = size;
        return {place_, size_};
    }

    std::span<const std::uint8_t> bytes() const { return {place_, size_}; }

    std::atomic<bool> was_used = true;

  private:
    const std::shared_ptr<BlockMemory> memory_;
    std::uint8_t* const place_;
    std::size_t size_ = 0;
};

// A bounded number of blocks, by their own numbers. Each is decoded by one thread, which claims it
// first; the others wait for that thread. Safe for any number of threads.
class BlockCache {
  public:
    using Block = std::shared_ptr<DecodedBlock>;

    BlockCache(std::size_t block_size, std::uint64_t capacity)
        : memory_(std::make_shared<BlockMemory>(block_size)), capacity_(capacity) {}

    // The block, or nothing where it is not there.
    Block find(std::uint64_t number);

    bool contains(std::uint64_t number);

    // Tries to claim a block for decoding. Returns false if it is cached or another thread is
    // decoding it. A claim ends with insert or give_up.
    bool claim(std::uint64_t number);

    // Memory for a block that was claimed; throws std::bad_alloc.
    Block make() { return std::make_shared<DecodedBlock>(memory_); }

    void insert(std::uint64_t number, Block block);
    void give_up(std::uint64_t number);

    // Waits until nobody decodes a block; whether it is there then.
    void wait(std::uint64_t number);

    // Keeps so many blocks from now on.
    void set_capacity(std::uint64_t capacity);

    std::uint64_t size();
    void clear();

  private:
    struct Shard {
        std::mutex mutex;
        std::condition_variable decoded;
        std::unordered_map<std::uint64_t, Block> blocks;  // nothing where one is claimed
    };

    Shard& shard(std::uint64_t number) { return shards_[number % shards_.size()]; }
    Block take_unused(std::uint64_t number);
    void evict();

    const std::shared_ptr<BlockMemory> memory_;
    std::array<Shard, 64> shards_;
    std::mutex order_mutex_;
    std::deque<std::uint64_t> order_;  // all blocks that are there, about as they came
    std::uint64_t capacity_;
};

}  // namespace gompfs

// The cache of decoded blocks, which threads read without the GIL.
//
// A block is cached, claimed, or absent. A thread that wants to decode an absent block claims it
// first, so that every block is decoded by one thread only; other threads wait for the claim to
// end. The blocks are spread over 64 shards by number, each with its own mutex, so that readers of
// different blocks rarely wait for each other.
//
// Eviction is second chance (CLOCK): blocks are queued in the order in which they were inserted; a
// block that was found since it last came to the front of the queue goes to the back again, any
// other block is evicted. A block that a reader still holds keeps its memory until the reader drops
// it.
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

#include "blocks/block_memory.h"

namespace gompfs {

// The bytes of a decoded block. They stay valid as long as a shared_ptr to the block exists.
class DecodedBlock {
  public:
    explicit DecodedBlock(std::shared_ptr<BlockMemory> memory)
        : memory_(std::move(memory)), data_(memory_->take()) {}
    ~DecodedBlock() { memory_->give_back(data_); }
    DecodedBlock(const DecodedBlock&) = delete;
    DecodedBlock& operator=(const DecodedBlock&) = delete;

    // Returns the memory to write `size` bytes to. Must be called before other threads can read the
    // block.
    std::span<std::uint8_t> resize(std::size_t size) {
        size_ = size;
        return {data_, size_};
    }

    std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

    std::atomic<bool> was_used = true;

  private:
    const std::shared_ptr<BlockMemory> memory_;
    std::uint8_t* const data_;
    std::size_t size_ = 0;
};

// A bounded number of blocks, by block number. Safe for any number of threads.
class BlockCache {
  public:
    using Block = std::shared_ptr<DecodedBlock>;

    BlockCache(std::size_t block_size, std::uint64_t capacity)
        : memory_(std::make_shared<BlockMemory>(block_size)), capacity_(capacity) {}

    // Returns the block, or nullptr if it is not cached.
    Block find(std::uint64_t number);

    bool contains(std::uint64_t number);

    // Tries to claim a block for decoding. Returns false if it is cached or another thread is
    // decoding it. Every claim must end with insert or give_up.
    bool claim(std::uint64_t number);

    // Memory for a claimed block. Throws std::bad_alloc.
    Block make() { return std::make_shared<DecodedBlock>(memory_); }

    void insert(std::uint64_t number, Block block);
    void give_up(std::uint64_t number);

    // Waits until no thread is decoding the block. The block may be cached or absent then.
    void wait(std::uint64_t number);

    // Sets the number of blocks to keep, and evicts blocks if there are more.
    void set_capacity(std::uint64_t capacity);

    std::uint64_t size();
    void clear();

  private:
    struct Shard {
        std::mutex mutex;
        std::condition_variable decoded;
        std::unordered_map<std::uint64_t, Block> blocks;  // nullptr for a claimed block
    };

    Shard& shard_of(std::uint64_t number) { return shards_[number % shards_.size()]; }
    Block take_unused(std::uint64_t number);
    void evict();

    const std::shared_ptr<BlockMemory> memory_;
    std::array<Shard, 64> shards_;
    std::mutex order_mutex_;
    std::deque<std::uint64_t> order_;  // all cached blocks, the next to check for eviction first
    std::uint64_t capacity_;
};

}  // namespace gompfs

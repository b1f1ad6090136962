// Implements the cache of decoded blocks; see block_cache.h for the eviction policy.
//
// Lock order: order_mutex_, then a shard's mutex. insert() never holds both while it waits: it
// releases the shard's mutex before it locks the order. The queue holds exactly the cached blocks
// (claims are in the shards only), so its length is the number that is compared with the capacity.
#include "blocks/block_cache.h"

#include <utility>

namespace gompfs {

BlockCache::Block BlockCache::find(std::uint64_t number) {
    Shard& shard = shard_of(number);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(number);
    if (found == shard.blocks.end() || !found->second) {
        return nullptr;
    }
    found->second->was_used.store(true, std::memory_order_relaxed);
    return found->second;
}

bool BlockCache::contains(std::uint64_t number) {
    Shard& shard = shard_of(number);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(number);
    return found != shard.blocks.end() && found->second;
}

bool BlockCache::claim(std::uint64_t number) {
    Shard& shard = shard_of(number);
    const std::lock_guard lock(shard.mutex);
    return shard.blocks.try_emplace(number).second;
}

void BlockCache::insert(std::uint64_t number, Block block) {
    Shard& shard = shard_of(number);
    {
        const std::lock_guard lock(shard.mutex);
        std::swap(shard.blocks[number], block);
    }
    shard.decoded.notify_all();
    if (!block) {
        const std::lock_guard lock(order_mutex_);
        order_.push_back(number);
        evict();
    }
}

void BlockCache::give_up(std::uint64_t number) {
    Shard& shard = shard_of(number);
    {
        const std::lock_guard lock(shard.mutex);
        const auto found = shard.blocks.find(number);
        if (found != shard.blocks.end() && !found->second) {
            shard.blocks.erase(found);
        }
    }
    shard.decoded.notify_all();
}

void BlockCache::wait(std::uint64_t number) {
    Shard& shard = shard_of(number);
    std::unique_lock lock(shard.mutex);
    shard.decoded.wait(lock, [&] {
        const auto found = shard.blocks.find(number);
        return found == shard.blocks.end() || found->second;
    });
}

void BlockCache::set_capacity(std::uint64_t capacity) {
    const std::lock_guard lock(order_mutex_);
    capacity_ = capacity;
    evict();
}

std::uint64_t BlockCache::size() {
    const std::lock_guard lock(order_mutex_);
    return order_.size();
}

void BlockCache::clear() {
    const std::lock_guard lock(order_mutex_);
    for (const std::uint64_t number : order_) {
        Shard& shard = shard_of(number);
        const std::lock_guard shard_lock(shard.mutex);
        shard.blocks.erase(number);
    }
    order_.clear();
}

// Evicts blocks from the front of the queue until the capacity is kept. A block that was read since
// its last turn goes to the back instead. Called with order_mutex_ locked.
void BlockCache::evict() {
    while (order_.size() > capacity_) {
        const std::uint64_t number = order_.front();
        order_.pop_front();
        if (!take_unused(number)) {
            order_.push_back(number);
        }
    }
}

// Removes the block from its shard and returns it, or returns nullptr if the block was used since
// the last call.
BlockCache::Block BlockCache::take_unused(std::uint64_t number) {
    Shard& shard = shard_of(number);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(number);
    if (found->second->was_used.exchange(false, std::memory_order_relaxed)) {
        return nullptr;
    }
    Block block = std::move(found->second);
    shard.blocks.erase(found);
    return block;
}

}  // namespace gompfs

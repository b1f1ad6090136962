// Claims on blocks of the cache that one thread is about to decode.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "blocks/block_cache.h"

namespace gompfs {

// Every claim ends: the destructor gives up the claims that were not settled, for example after an
// exception, so that other threads can decode these blocks.
class Claims {
  public:
    explicit Claims(BlockCache& cache) : cache_(cache) {}
    ~Claims() {
        for (std::size_t index = 0; index < numbers_.size(); ++index) {
            if (is_open_[index]) {
                cache_.give_up(numbers_[index]);
            }
        }
    }
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;

    // Claims a block. Returns false if it is cached or another thread has claimed it.
    bool claim(std::uint64_t number) {
        numbers_.reserve(numbers_.size() + 1);
        is_open_.reserve(numbers_.size() + 1);
        if (!cache_.claim(number)) {
            return false;
        }
        numbers_.push_back(number);
        is_open_.push_back(1);
        return true;
    }

    // Sorts the claims by block number. None may be settled yet.
    void sort() { std::sort(numbers_.begin(), numbers_.end()); }

    // Ends a claim: inserts the block, or gives the claim up if `block` is nullptr. Several threads
    // may settle different claims at once.
    void settle(std::size_t index, const BlockCache::Block& block) {
        is_open_[index] = 0;
        if (block) {
            cache_.insert(numbers_[index], block);
        } else {
            cache_.give_up(numbers_[index]);
        }
    }

    const std::vector<std::uint64_t>& numbers() const { return numbers_; }

  private:
    BlockCache& cache_;
    std::vector<std::uint64_t> numbers_;
    std::vector<std::uint8_t> is_open_;
};

}  // namespace gompfs

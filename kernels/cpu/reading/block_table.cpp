#include "reading/block_table.h"

#include <utility>

namespace gompfs {

BlockTable::Block BlockTable::find(std::uint64_t number) {
    Shard& place = shard(number);
    const std::lock_guard lock(place.mutex);
    const auto found = place.blocks.find(number);
    if (found == place.blocks.end()) {
        return nullptr;
    }
    found->second->was_used.store(true, std::memory_order_relaxed);
    return found->second;
}

void BlockTable::insert(std::uint64_t number, std::span<const std::uint8_t> bytes,
                        std::unique_ptr<Loan> loan) {
    end_loans();
    Block shared(new DecodedBlock{bytes, std::move(loan)},
                 [this](DecodedBlock* unused) { discard(unused); });
    Shard& place = shard(number);
    {
        const std::lock_guard lock(place.mutex);
        std::swap(place.blocks[number], shared);
    }
}

void BlockTable::erase(std::uint64_t number) {
    Shard& place = shard(number);
    Block block;
    {
        const std::lock_guard lock(place.mutex);
        const auto found = place.blocks.find(number);
        if (found == place.blocks.end()) {
            return;
        }
        block = std::move(found->second);
        place.blocks.erase(found);
    }
    block.reset();
    end_loans();
}

bool BlockTable::take_use(std::uint64_t number) {
    Shard& place = shard(number);
    const std::lock_guard lock(place.mutex);
    const auto found = place.blocks.find(number);
    return found != place.blocks.end() &&
           found->second->was_used.exchange(false, std::memory_order_relaxed);
}

void BlockTable::clear() {
    for (Shard& place : shards_) {
        std::unordered_map<std::uint64_t, Block> blocks;
        {
            const std::lock_guard lock(place.mutex);
            blocks.swap(place.blocks);
        }
    }
    end_loans();
}

// The last holder may be a thread that must not end the loan.
void BlockTable::discard(DecodedBlock* block) {
    const std::lock_guard lock(discarded_mutex_);
    discarded_.push_back(block);
}

void BlockTable::end_loans() {
    std::vector<DecodedBlock*> discarded;
    {
        const std::lock_guard lock(discarded_mutex_);
        discarded.swap(discarded_);
    }
    for (DecodedBlock* block : discarded) {
        delete block;
    }
}

}  // namespace gompfs

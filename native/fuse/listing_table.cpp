// Implements the cache of listings; see listing_table.h.
//
// The table is bounded by bytes and drops listings in the order of insertion. The request for the
// next batch (Following) is shared by all listings of a batch and taken once, by an atomic
// exchange, so use() needs a shared lock only.
#include "fuse/listing_table.h"

#include <mutex>

namespace gompfs {

namespace {

constexpr std::uint64_t kEntriesForNames = 64;

}  // namespace

ListingPointer ListingTable::use(std::uint64_t node) {
    Entry entry;
    {
        const std::shared_lock lock(mutex_);
        const auto found = entries_.find(node);
        if (found == entries_.end()) {
            return nullptr;
        }
        entry = found->second;
    }
    if (entry.following && !entry.following->is_taken.exchange(true)) {
        wanted_.push(entry.following->wanted);
    }
    return entry.listing;
}

bool ListingTable::contains(std::uint64_t node) const {
    const std::shared_lock lock(mutex_);
    return entries_.contains(node);
}

void ListingTable::insert(ListingBatch batch, std::optional<WantedListing> following) {
    std::shared_ptr<Following> shared;
    if (following) {
        shared = std::make_shared<Following>(*following);
    }
    const std::unique_lock lock(mutex_);
    for (auto& [node, listing] : batch) {
        const std::size_t size = listing->num_bytes();
        if (!entries_.try_emplace(node, std::move(listing), shared).second) {
            continue;  // another thread was faster; both listings are equal
        }
        nodes_.push_back(node);
        num_bytes_ += size;
        while (num_bytes_ > max_bytes_ && nodes_.size() > 1) {
            const auto oldest = entries_.find(nodes_.front());
            num_bytes_ -= oldest->second.listing->num_bytes();
            entries_.erase(oldest);
            nodes_.pop_front();
        }
    }
}

void ListingTable::note_missed(std::uint64_t node) {
    if (last_missed_.exchange(node) == node) {
        wanted_.push({node, kEntriesForNames});
    }
}

std::size_t ListingTable::num_bytes() const {
    const std::shared_lock lock(mutex_);
    return num_bytes_;
}

}  // namespace gompfs

// The cache of directory listings of a mount, and the directories to list ahead of a program that
// walks the tree.
//
// Directories that are adjacent in the index are read from it as a batch. The first use of any
// listing of a batch requests the next batch, so that a program that walks the tree in index order
// always finds its listings ready. A thread of the mount waits for these requests and fulfils them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/latest_wanted.h"
#include "fuse/listing.h"

namespace gompfs {

// A directory to list, and the number of entries to read from the index for it and the directories
// after it.
struct WantedListing {
    std::uint64_t node;
    std::uint64_t num_entries;
};

using ListingPointer = std::shared_ptr<const Listing>;

// Listings of adjacent directories, with their nodes.
using ListingBatch = std::vector<std::pair<std::uint64_t, ListingPointer>>;

// Listings by node. The first use of a listing of a batch requests the next batch. Safe for any
// number of threads.
class ListingTable {
  public:
    // Caches listings of up to max_bytes bytes; the oldest are evicted first.
    explicit ListingTable(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    // Returns the listing of a directory, to read its entries or find a name; nullptr if it is not
    // cached.
    ListingPointer use(std::uint64_t node);
    bool contains(std::uint64_t node) const;

    // Caches listings. Requests `following` once one of them is used.
    void insert(ListingBatch batch, std::optional<WantedListing> following);

    // Reports a name looked up in a directory whose listing is not cached. The second such name in
    // a row requests the listing.
    void note_missed(std::uint64_t node);

    // Requests that a directory, and the directories after it in the index, are listed ahead, up to
    // num_entries entries.
    void want(WantedListing wanted) { wanted_.push(wanted); }

    // Waits for a request to list ahead. Returns nothing once the table is closed.
    std::optional<WantedListing> wait() { return wanted_.wait(); }
    void close() { wanted_.close(); }

    std::size_t num_bytes() const;

  private:
    struct Following {
        explicit Following(WantedListing wanted) : wanted(wanted) {}
        const WantedListing wanted;
        std::atomic<bool> is_taken = false;
    };
    struct Entry {
        ListingPointer listing;
        std::shared_ptr<Following> following;
    };

    const std::size_t max_bytes_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, Entry> entries_;
    std::deque<std::uint64_t> nodes_;  // in the order of insertion
    std::size_t num_bytes_ = 0;

    std::atomic<std::uint64_t> last_missed_ = 0;
    LatestWanted<WantedListing> wanted_{16};
};

}  // namespace gompfs

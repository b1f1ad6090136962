// The listings that a mount keeps, and what to list ahead of whoever walks the tree.
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
#include "reading/listing.h"

namespace gompfs {

// A directory to list, and how many entries to ask for, of it and of those behind it.
struct WantedListing {
    std::uint64_t node;
    std::uint64_t num_entries;
};

// Listings by node. Directories that the index has one after the other come as a batch. Who uses a
// listing of a batch for the first time makes the next batch wanted. Safe for any number of
// threads.
class ListingTable {
  public:
    using Kept = std::shared_ptr<const Listing>;
    using Batch = std::vector<std::pair<std::uint64_t, Kept>>;

    // Keeps listings of so many bytes; the oldest go first.
    explicit ListingTable(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    // The listing of a directory, for its entries or one of their names; nothing where it is not
    // kept.
    Kept use(std::uint64_t node);
    bool contains(std::uint64_t node) const;

    // Keeps listings. `following` is wanted once one of them is used.
    void insert(Batch batch, std::optional<WantedListing> following);

    // Takes note of a name asked for in a directory that is not kept: the second makes it wanted.
    void note_missed(std::uint64_t node);

    // Has a directory listed ahead, and those that the index has after it, so many entries.
    void want(WantedListing wanted) { wanted_.push(wanted); }

    // Waits for what should be listed ahead; nothing once the table is closed.
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
        Kept listing;
        std::shared_ptr<Following> following;
    };

    const std::size_t max_bytes_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, Entry> entries_;
    std::deque<std::uint64_t> nodes_;  // in the order in which they came
    std::size_t num_bytes_ = 0;

    std::atomic<std::uint64_t> last_missed_ = 0;
    LatestWanted<WantedListing> wanted_{16};
};

}  // namespace gompfs

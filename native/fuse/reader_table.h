// The readers of all archives that a mount shows. There are several if the mount follows a file
// that is replaced, or shows several archives.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "blocks/block_reader.h"

namespace gompfs {

// Maps node numbers to readers. The bits of a node number from kSnapshotShift on say which snapshot
// (opened archive) the node belongs to; the lower bits are the inode number in that archive. Safe
// for any number of threads.
class ReaderTable {
  public:
    static constexpr int kSnapshotShift = 48;
    static constexpr std::uint64_t kMaxSnapshots = 1 << 14;

    struct Target {
        std::shared_ptr<BlockReader> reader;  // nullptr if the node belongs to no snapshot
        std::uint64_t ino;
    };

    // Adds a snapshot and makes it the current one.
    void insert(std::uint64_t snapshot, std::shared_ptr<BlockReader> reader) {
        const std::unique_lock lock(mutex_);
        readers_[snapshot] = reader;
        current_ = std::move(reader);
    }

    void erase(std::uint64_t snapshot) {
        const std::unique_lock lock(mutex_);
        readers_.erase(snapshot);
    }

    Target find(std::uint64_t node) const {
        const std::uint64_t snapshot = node >> kSnapshotShift & (kMaxSnapshots - 1);
        const std::shared_lock lock(mutex_);
        const auto found = readers_.find(snapshot);
        return {found == readers_.end() ? nullptr : found->second,
                node ^ snapshot << kSnapshotShift};
    }

    std::shared_ptr<BlockReader> current() const {
        const std::shared_lock lock(mutex_);
        return current_;
    }

  private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<BlockReader>> readers_;
    std::shared_ptr<BlockReader> current_;
};

}  // namespace gompfs

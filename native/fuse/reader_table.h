// All archives that a mount shows. There are several if the mount follows a file that is replaced,
// or shows several archives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "fuse/served_archive.h"

namespace gompfs {

// Maps node numbers to archives. The bits of a node number from kSnapshotShift on say which
// snapshot (opened archive) the node belongs to; the lower bits are the inode number in that
// archive. Safe for any number of threads.
class ReaderTable {
  public:
    static constexpr int kSnapshotShift = 48;
    static constexpr std::uint64_t kMaxSnapshots = 1 << 14;
    // Node numbers of virtual entries begin here. Inode numbers are smaller.
    static constexpr std::uint64_t kFirstVirtual = std::uint64_t{1} << 62;

    struct Target {
        std::shared_ptr<ServedArchive> archive;  // nullptr if the node belongs to no snapshot
        std::uint64_t ino;
    };

    // Adds a snapshot and makes it the current one.
    void insert(std::uint64_t snapshot, std::shared_ptr<ServedArchive> archive) {
        const std::unique_lock lock(mutex_);
        archives_[snapshot] = archive;
        current_ = std::move(archive);
    }

    void erase(std::uint64_t snapshot) {
        const std::unique_lock lock(mutex_);
        archives_.erase(snapshot);
    }

    Target find(std::uint64_t node) const {
        const std::uint64_t snapshot = node >> kSnapshotShift & (kMaxSnapshots - 1);
        const std::shared_lock lock(mutex_);
        const auto found = archives_.find(snapshot);
        return {found == archives_.end() ? nullptr : found->second,
                node ^ snapshot << kSnapshotShift};
    }

    // Lets C++ open known files of less than `size` bytes, without a file handle; 0 for none. Only
    // for a mount of one archive.
    void open_files_below(std::uint64_t size) { open_below_ = size; }

    bool opens(const Target& target) const {
        const std::uint64_t limit = open_below_.load(std::memory_order_relaxed);
        const auto file =
            limit && target.archive ? target.archive->reader->layouts.look_up(target.ino) : nullptr;
        return file && file->size < limit;
    }

    std::shared_ptr<ServedArchive> current() const {
        const std::shared_lock lock(mutex_);
        return current_;
    }

  private:
    std::atomic<std::uint64_t> open_below_ = 0;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<ServedArchive>> archives_;
    std::shared_ptr<ServedArchive> current_;
};

}  // namespace gompfs

// Counts the names of inodes; see link_counts.h.
#include "index/link_counts.h"

#include <algorithm>

namespace gompfs {

LinkCounts::LinkCounts(const IndexColumns& columns) {
    const std::uint64_t num_inodes = columns.inode.num_rows;
    AscendingNumbers inos(columns.inode.inos, num_inodes, 1);
    NumberColumn modes(columns.inode.modes, num_inodes);
    inos_.reserve(num_inodes);
    std::uint64_t mode = 0;
    for (std::uint64_t left = num_inodes; left != 0; --left) {
        inos_.push_back(inos.next());
        mode += static_cast<std::uint64_t>(modes.next_signed());
        is_directory_.push_back((mode & kFileTypeBits) == kDirectoryType);
    }
    counts_.resize(inos_.size());
    const std::uint64_t num_entries = columns.dirent.num_rows;
    AscendingNumbers parents(columns.dirent.parents, num_entries, 0);
    NumberColumn children(columns.dirent.inos, num_entries);
    std::uint64_t ino = 0;
    for (std::uint64_t left = num_entries; left != 0; --left) {
        const std::uint64_t parent = parents.next();
        ino += 1 + static_cast<std::uint64_t>(children.next_signed());
        const std::size_t child = find(ino);
        if (child == inos_.size()) {
            continue;
        }
        const std::size_t counted = is_directory_[child] ? find(parent) : child;
        if (counted != inos_.size() && is_directory_[counted] == is_directory_[child]) {
            ++counts_[counted];
        }
    }
}

std::size_t LinkCounts::find(std::uint64_t ino) {
    // Most inodes are as far from the one found last as their numbers are.
    if (last_found_ < inos_.size()) {
        const std::uint64_t guess = last_found_ + (ino - inos_[last_found_]);
        if (guess < inos_.size() && inos_[guess] == ino) {
            return last_found_ = guess;
        }
    }
    const auto found = std::ranges::lower_bound(inos_, ino);
    if (found == inos_.end() || *found != ino) {
        return inos_.size();
    }
    return last_found_ = static_cast<std::size_t>(found - inos_.begin());
}

}  // namespace gompfs

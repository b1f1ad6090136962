// Counts the names of inodes; see link_counts.h.
#include "index/link_counts.h"

#include <algorithm>

namespace gompfs {

LinkCounts::LinkCounts(const IndexColumns& columns) {
    const std::uint64_t num_inodes = columns.inode.num_rows;
    AscendingNumbers inos(columns.inode.inos, num_inodes, 1);
    NumberColumn modes(columns.inode.modes, num_inodes);
    is_directory_.reserve(num_inodes);
    std::uint64_t mode = 0, last_ino = 0;
    for (std::uint64_t left = num_inodes; left != 0; --left) {
        const std::uint64_t ino = inos.next();
        if (runs_.empty() || ino != last_ino + 1) {
            runs_.push_back({ino, is_directory_.size()});
        }
        last_ino = ino;
        mode += static_cast<std::uint64_t>(modes.next_signed());
        is_directory_.push_back((mode & kFileTypeBits) == kDirectoryType);
    }
    counts_.resize(is_directory_.size());
    const std::uint64_t num_entries = columns.dirent.num_rows;
    AscendingNumbers parents(columns.dirent.parents, num_entries, 0);
    NumberColumn children(columns.dirent.inos, num_entries);
    std::uint64_t ino = 0;
    for (std::uint64_t left = num_entries; left != 0; --left) {
        const std::uint64_t parent = parents.next();
        ino += 1 + static_cast<std::uint64_t>(children.next_signed());
        const std::size_t child = find(ino);
        if (child == counts_.size()) {
            continue;
        }
        const std::size_t counted = is_directory_[child] ? find(parent) : child;
        if (counted != counts_.size() && is_directory_[counted] == is_directory_[child] &&
            ++counts_[counted] == 0) {
            fail_index("an inode has too many names");
        }
    }
}

std::optional<std::size_t> LinkCounts::find_in(std::size_t run, std::uint64_t ino) const {
    const std::size_t end =
        run + 1 == runs_.size() ? counts_.size() : runs_[run + 1].first_position;
    const auto [first_ino, first_position] = runs_[run];
    if (ino < first_ino || ino - first_ino >= end - first_position) {
        return std::nullopt;
    }
    return first_position + (ino - first_ino);
}

std::size_t LinkCounts::find(std::uint64_t ino) {
    if (runs_.empty()) {
        return counts_.size();
    }
    if (const auto position = find_in(last_run_, ino)) {
        return *position;
    }
    const auto after = std::ranges::upper_bound(runs_, ino, {}, &Run::first_ino);
    if (after != runs_.begin()) {
        const auto run = static_cast<std::size_t>(after - runs_.begin()) - 1;
        if (const auto position = find_in(run, ino)) {
            last_run_ = run;
            return *position;
        }
    }
    return counts_.size();
}

}  // namespace gompfs

// The link counts of inodes, which follow from their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "index/index_rows.h"

namespace gompfs {

// Counts the names of all inodes: nlink is the number of names or, for a directory, 2 plus the
// number of names of directories in it.
class LinkCounts {
  public:
    // Throws std::invalid_argument.
    explicit LinkCounts(const IndexColumns& columns);

    // Returns nlink of the inode with this position in the table.
    std::uint64_t of(std::size_t position) const {
        return counts_[position] + (is_directory_[position] ? 2 : 0);
    }

  private:
    // Returns the position of an inode, or the number of inodes if there is none.
    std::size_t find(std::uint64_t ino);

    std::vector<std::uint64_t> inos_, counts_;
    std::vector<std::uint8_t> is_directory_;
    std::size_t last_found_ = 0;
};

}  // namespace gompfs

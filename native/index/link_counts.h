// The link counts of inodes, which follow from their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "index/index_rows.h"

namespace gompfs {

// Counts the names of all inodes: nlink is the number of names or, for a directory, 2 plus the
// number of names of directories in it.
class LinkCounts {
  public:
    // Throws std::invalid_argument; also if an inode has 2^32 names or more.
    explicit LinkCounts(const IndexColumns& columns);

    // Returns nlink of the inode with this position in the table.
    std::uint64_t of(std::size_t position) const {
        return std::uint64_t{counts_[position]} + (is_directory_[position] ? 2 : 0);
    }

  private:
    // Inodes whose numbers follow each other: most archives have few such runs.
    struct Run {
        std::uint64_t first_ino;
        std::size_t first_position;
    };

    // Returns the position of an inode, or the number of inodes if there is none.
    std::size_t find(std::uint64_t ino);
    // Returns the position of an inode if that is in a run.
    std::optional<std::size_t> find_in(std::size_t run, std::uint64_t ino) const;

    std::vector<Run> runs_;
    std::vector<std::uint32_t> counts_;
    std::vector<bool> is_directory_;
    std::size_t last_run_ = 0;  // in which an inode was found
};

}  // namespace gompfs

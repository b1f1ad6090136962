// Makes listings from rows of the index, without a Python object per row. Throws
// std::invalid_argument if the rows are inconsistent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "blocks/stored_sizes.h"
#include "fuse/listing_table.h"

namespace gompfs {

// How a mount changes an archive's inode numbers, owners and modes.
struct NodeMapping {
    std::uint64_t first_node = 0;  // added to inode numbers
    std::optional<std::uint32_t> uid, gid;
    std::uint32_t umask = 0;
};

// The rows of whole directories, sorted by directory number and name, one row per entry. Each
// column is text: names end with '/', the fields of all other columns with ','.
struct DirectoryColumns {
    std::string_view parents, names;
    std::array<std::string_view, 8> fields;  // ino, mode, uid, gid, size, mtime_ns, nlink, rdev
};

// Returns the listings of the directories with inode numbers in [first, end), including the empty
// directories in that range, which have no rows. `stored_sizes` is indexed by inode number.
ListingBatch read_directories(const DirectoryColumns& columns, std::uint64_t first,
                              std::uint64_t end, const NodeMapping& mapping,
                              const StoredSizes& stored_sizes, std::uint32_t cache_seconds);

}  // namespace gompfs

// Makes listings, and layouts of files, of what the index has, without an object of the interpreter
// for each. Throws std::invalid_argument where that makes no sense.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reading/block_reader.h"
#include "reading/listing_table.h"
#include "reading/stored_sizes.h"

namespace gompfs {

// What a mount puts in place of an archive's inode numbers, owners and modes.
struct Mapping {
    std::uint64_t first_node = 0;  // is added to numbers
    std::optional<std::uint32_t> uid, gid;
    std::uint32_t umask = 0;
};

// Whole directories by number and name, a row for each entry. Columns are text: names end where a
// '/' is, the fields of all others where a ',' is.
struct DirectoryColumns {
    std::string_view parents, names;
    std::array<std::string_view, 8> fields;  // ino, mode, uid, gid, size, mtime_ns, nlink, rdev
};

// The listings of the directories from inode number `first` on, up to `end`; also those that others
// lead to and that have no rows, as they are empty. `stored_sizes` are by inode number.
ListingTable::Batch read_directories(const DirectoryColumns& columns, std::uint64_t first,
                                     std::uint64_t end, const Mapping& mapping,
                                     const StoredSizes& stored_sizes, std::uint32_t cache_seconds);

// ino, size, file_offset, stream_offset, extent size, in the same form: a row for each extent by
// file and file_offset, and one with size -1 for a file that has none.
using LayoutColumns = std::array<std::string_view, 5>;

// The layouts of all files but those from `end` on.
std::vector<std::pair<std::uint64_t, FileLayout>> read_layouts(const LayoutColumns& columns,
                                                               std::uint64_t end);

}  // namespace gompfs

// Makes listings of what the index has, without an object of the interpreter for each entry.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reading/listing_table.h"

namespace gompfs {

// What a mount puts in place of an archive's owners and modes.
struct Ownership {
    std::optional<std::uint32_t> uid, gid;
    std::uint32_t umask = 0;
};

// Whole directories by number and name, a row for each entry. Names end where a '/' is, the fields
// of all other columns where a ',' is.
struct IndexColumns {
    std::string_view parents, names;
    std::array<std::string_view, 8> fields;  // ino, mode, uid, gid, size, mtime_ns, nlink, rdev
};

// The listings of the directories from `first` on, up to `end`; empty ones that others lead to too.
// Throws std::invalid_argument where a row makes no sense.
ListingTable::Batch read_columns(const IndexColumns& columns, std::uint64_t first,
                                 std::uint64_t end, const Ownership& owner,
                                 std::uint32_t cache_seconds);

}  // namespace gompfs

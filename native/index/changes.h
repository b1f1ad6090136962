// Indexes that store what differs from the index of the generation before, so that a small add to a
// large archive costs little: docs/format.md, section 3.
//
// Changes have all tables of an index, with the rows that are new or different, and two groups
// more: the inodes and the names that are gone. An inode that changes mention, in table inode or as
// removed, is theirs: its extents, extended attributes and its row of binary_file are those of the
// newest changes that mention it. So the rows of all indexes are merged in one pass over each
// table, in which each inode has one owner. The columns of changes are untrusted input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.h"
#include "index/columns_writer.h"

namespace gompfs {

// Returns the columns of the whole index that changes lead to. The first columns are those of a
// whole index, the others those of changes, oldest first. Throws std::invalid_argument, naming what
// is wrong, if they are not.
std::vector<std::uint8_t> merge_columns(std::span<const Bytes> columns);

// Returns the changes that lead from one whole index to another. merge_columns gives the same
// columns as `after`. Throws std::invalid_argument if columns are damaged, or if `after` lacks a
// segment or section of `before`.
StoredColumns changes_between(Bytes before, Bytes after);

}  // namespace gompfs

// The SQLite image of an index: what readers query, and what an archive stores as columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/large_vector.h"
#include "index/columns_writer.h"

namespace gompfs {

// The statement that creates a table, as SQLite keeps it.
struct TableStatement {
    std::string name, sql;
};

// Builds the image of an index from its columns. The bytes depend on the arguments only.
// Apart from a few pages, the image has at most twice their unpacked size. Throws
// std::invalid_argument, naming what is wrong, if the columns are not those of an index.
LargeVector<std::uint8_t> build_image(Bytes columns, std::span<const TableStatement> tables);

// Writes that image to an empty file. Throws std::system_error, too.
void write_image(Bytes columns, std::span<const TableStatement> tables, int descriptor);

// Returns the columns for the tables in an image that SQLite has written to a file. The column
// nlink of the table inode is not stored, since it follows from the names. Throws
// std::invalid_argument if a value has another type than its column, or if the columns cannot store
// it, and std::system_error.
StoredColumns columns_of_image(int descriptor);

}  // namespace gompfs

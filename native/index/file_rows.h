// The files of an archive: what a search needs of the tables dirent, inode and extent, read from
// the columns of an index. That takes a small part of the time of SQLite, which makes text of all
// numbers here.
//
// The index is untrusted input: every field is checked, and the first impossible one throws
// std::invalid_argument.
#pragma once

#include <vector>

#include "common/bytes.h"
#include "index/index_rows.h"

namespace gompfs {

struct FileRows {
    std::vector<EntryRow> entries;   // of all directories, by parent and name
    std::vector<FileRow> files;      // the regular files, by ino
    std::vector<ExtentRow> extents;  // by ino and file_offset
};

// Reads the rows. Names point into the columns.
FileRows read_file_rows(Bytes columns);

}  // namespace gompfs

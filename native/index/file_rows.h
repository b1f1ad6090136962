// The files of an archive: what a search needs of the tables dirent, inode and extent, read from
// the pages of an index. That takes an eighth of the time of SQLite, which makes text of all
// numbers here.
//
// The index is untrusted input: every field is checked, and the first impossible one throws
// std::invalid_argument. See index/pages.h for the checks of pages.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gompfs {

struct EntryRow {
    std::uint64_t parent, ino;
    std::string_view name;
};

struct FileRow {
    std::uint64_t ino, size;
};

struct ExtentRow {
    std::uint64_t ino, file_offset, stream_offset, size;
};

// The root pages of tables.
struct FileTables {
    std::uint32_t dirent, inode, extent;
};

struct FileRows {
    std::vector<EntryRow> entries;        // of all directories, by parent and name
    std::vector<FileRow> files;           // the regular files, by ino
    std::vector<ExtentRow> extents;       // by ino and file_offset
    std::deque<std::string> split_names;  // of entries: names that are in several pages
};

// Reads the rows. Names point into the image or into the result.
FileRows read_file_rows(std::span<const std::uint8_t> image, const FileTables& tables);

}  // namespace gompfs

// Reads the rows of files from the columns of an index; see file_rows.h.
#include "index/file_rows.h"

namespace gompfs {
namespace {

void check_name(std::string_view name) {
    if (name.empty() || name.find('/') != name.npos || name == "." || name == "..") {
        fail_index("a name is impossible");
    }
}

}  // namespace

FileRows read_file_rows(Bytes bytes) {
    const IndexColumns columns(bytes);
    FileRows rows;
    EntryRows entries(columns);  // checks the number of rows
    rows.entries.reserve(columns.dirent.num_rows);
    for (EntryRow row; entries.next(row);) {
        check_name(row.name);
        rows.entries.push_back(row);
    }
    InodeRows inodes(columns);
    for (InodeRow row; inodes.next(row);) {
        if ((row.mode & kFileTypeBits) == kRegularType) {
            rows.files.push_back({row.ino, row.size});
        }
    }
    ExtentRows extents(columns);
    rows.extents.reserve(columns.extent.num_rows);
    for (ExtentRow row; extents.next(row);) {
        rows.extents.push_back(row);
    }
    return rows;
}

}  // namespace gompfs

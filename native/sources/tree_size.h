// How much there is to pack in a directory tree, which a progress bar shows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sources/local_files.h"

namespace gompfs {

// A regular file or a directory in a directory.
struct TreeEntry {
    std::string name;
    bool is_directory = false;
    // Of a file:
    std::uint64_t size = 0;
    InodeNumber inode;
    bool has_more_names = false;
};

struct TreeSizeOptions {
    bool one_file_system;  // directories of other file systems are empty
    std::vector<InodeNumber> skipped;
    // Removes entries that are left out; may be null. The path is that of their directory below the
    // root, with a slash at its end unless it is empty.
    std::function<void(const std::string& path, std::vector<TreeEntry>& entries)> filter;
    unsigned max_threads;  // many help where the tree is far away (tasks_ahead.h)
};

// Returns the size in bytes of the regular files below `root`. A file with several names counts
// once. What cannot be read is left out: only packing the entry says what is wrong with it. Throws
// Cancelled, and what the filter throws.
std::uint64_t size_of_tree(const std::string& root, const TreeSizeOptions& options);

}  // namespace gompfs

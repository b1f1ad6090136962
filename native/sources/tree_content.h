// The regular files below a directory, as if their contents were one file.
//
// Packing asks how much there is, and for samples of it, before it reads the tree. The walk and the
// reads use many threads where the tree is far away (tasks_ahead.h). What cannot be read is left
// out: only packing the entry says what is wrong with it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sources/local_files.h"

namespace gompfs {

class TreeContent {
  public:
    // A regular file or a directory in a directory.
    struct Entry {
        std::string name;
        bool is_directory = false;
        std::uint32_t directory = 0;  // the number of the directory
        // Of a file:
        std::uint64_t size = 0;
        InodeNumber inode;
        bool has_more_names = false;
    };
    using Entries = std::vector<Entry>;

    // Removes entries that are left out. The path is that of their directory below the root, with a
    // slash at its end unless it is empty.
    using Filter = std::function<void(const std::string& path, Entries& entries)>;

    struct Options {
        bool one_file_system;  // directories of other file systems are empty
        std::vector<InodeNumber> skipped;
        Filter filter;  // may be null
        unsigned max_threads;
    };

    // Walks the tree. Of the names of a file, only the first counts. Throws Cancelled, and what the
    // filter throws.
    TreeContent(std::string root, const Options& options);

    std::uint64_t size() const { return files_.empty() ? 0 : files_.back().end; }
    // Returns a range of the content, which must end before it, without the bytes that cannot be
    // read any more. Throws Cancelled.
    std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t size) const;

  private:
    struct Directory {
        std::string path;  // as that of a filter
        Entries entries;   // in byte order of their names
    };
    struct File {
        std::uint32_t directory;
        std::string name;
        std::uint64_t end;  // offset in the content
    };
    class ListTask;
    class ReadTask;

    std::vector<Directory> walk(const Options& options) const;
    void take_files(std::vector<Directory>& directories, const std::vector<InodeNumber>& skipped);

    const std::string root_;  // with a slash at its end
    const unsigned max_threads_;
    std::vector<std::string> paths_;  // of directories
    std::vector<File> files_;         // depth first, the names of each directory in byte order
};

}  // namespace gompfs

// Files and directories of the local file system, as packing needs them.
//
// Errors are part of the result, as an errno: the caller decides whether to stop or to leave the
// file out.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/descriptor.h"
#include "common/file_content.h"

namespace gompfs {

// What identifies a file while it exists.
using InodeNumber = std::pair<dev_t, ino_t>;

// Extended attributes: names and values.
using Xattrs = std::vector<std::pair<std::string, std::string>>;

// What an archive that is added to says of a file at the path of another.
struct ArchivedFile {
    std::uint64_t size;
    std::int64_t mtime_ns;
    std::uint64_t ino;
};

// A file that was opened. `content` is there if the file is regular, has one name and no holes, is
// small enough, and was read completely, and then `xattrs` has its extended attributes, unless they
// cannot be read. The file is closed if there is nothing more to read.
struct LocalFile {
    int error = 0;  // of opening it
    struct stat status{};
    bool has_xattrs = false;   // that have not been read, or they cannot be listed
    bool has_changed = false;  // while it was read
    Xattrs xattrs;
    Descriptor file;
    std::shared_ptr<FileContent> content;
    std::uint64_t archived_ino = 0;  // if the archive has the file unchanged
};

struct LocalDirectory {
    enum class Kind : std::uint8_t { directory, regular, other };
    struct Name {
        std::string name;
        Kind kind;
    };

    int error = 0;  // of opening or listing it
    struct stat status{};
    bool has_xattrs = false;  // or they cannot be listed
    std::shared_ptr<Descriptor> directory;
    std::vector<Name> names;  // in byte order
};

// Opens a file without following a symlink, and without reading it. `directory` is a descriptor.
LocalFile open_file(int directory, const std::string& name);

// Takes the file as unchanged, and reads its extended attributes instead of its content, if it is
// regular, has one name, and has the size and the modification time that the archive says. Returns
// whether it does.
bool take_unchanged(LocalFile& file, const ArchivedFile& archived);

// Whether read_file can read a file of at most max_size bytes: not one whose size is 0 although it
// has content. Otherwise, the kernel is asked to read its beginning.
bool can_be_read_whole(const LocalFile& file, std::uint64_t max_size);
void read_file(LocalFile& file);

// Fills `out` with the bytes of an open file from an offset on, on up to num_threads threads.
// Returns how many bytes are missing because the file is shorter; they are zeros. Throws
// std::system_error.
std::size_t read_range(int descriptor, std::uint64_t offset, std::span<std::uint8_t> out,
                       unsigned num_threads);

// Opens and lists a directory. With `device`, a directory of another file system counts as empty.
LocalDirectory list_directory(int parent, const std::string& name, bool follows_symlink,
                              std::optional<dev_t> device);

}  // namespace gompfs

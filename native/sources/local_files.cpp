// Opens, reads and lists local files; see local_files.h.
//
// A name may have become something else since its directory was listed. So a file is opened without
// following symlinks, and without waiting for the other end of a FIFO.
#include "sources/local_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>

#include "common/parallel.h"
#include "common/read_fully.h"

namespace gompfs {
namespace {

constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr int kDirectoryFlags = O_RDONLY | O_CLOEXEC | O_DIRECTORY;
constexpr off_t kReadAhead = off_t{1} << 20;
constexpr std::size_t kReadAtOnce = std::size_t{256} << 10;  // of a large file, by one thread

// Whether an errno means that a file has no extended attribute, or none that may be read.
bool means_no_xattr(int error) {
    return error == ENOTSUP || error == ENODATA || error == EPERM || error == EACCES;
}

bool has_xattrs(int file) {
    const ssize_t size = flistxattr(file, nullptr, 0);
    return size > 0 || (size < 0 && !means_no_xattr(errno));
}

// Reads the extended attributes that may be read. Returns false if there is any other error.
bool read_xattrs(int file, Xattrs& xattrs) {
    std::array<char, XATTR_LIST_MAX> names;
    std::array<char, XATTR_SIZE_MAX> value;
    const ssize_t size = flistxattr(file, names.data(), names.size());
    if (size < 0) {
        return means_no_xattr(errno);
    }
    for (const char* name = names.data(); name < names.data() + size; name += strlen(name) + 1) {
        const ssize_t count = fgetxattr(file, name, value.data(), value.size());
        if (count >= 0) {
            xattrs.emplace_back(name, std::string(value.data(), static_cast<std::size_t>(count)));
        } else if (!means_no_xattr(errno)) {
            return false;
        }
    }
    return true;
}

bool has_holes(int file, const struct stat& status) {
    constexpr off_t kBlockSize = 512;
    if (status.st_blocks * kBlockSize >= status.st_size) {
        return false;
    }
    const off_t hole = lseek(file, 0, SEEK_HOLE);
    return hole >= 0 && hole < status.st_size;
}

// Reads the extended attributes. Closes the file if there is nothing more to read.
void read_rest(LocalFile& file) {
    if (file.has_xattrs && read_xattrs(file.file.number(), file.xattrs)) {
        file.has_xattrs = false;
    }
    if (!file.has_xattrs) {
        file.file.close();
    }
}

// Whether a file has content although its size is 0, as files of /proc have.
bool has_unknown_size(int file, const struct stat& status) {
    char first;
    return status.st_size == 0 && pread(file, &first, 1, 0) == 1;
}

LocalDirectory::Kind kind_of(const dirent& entry, int directory) {
    using Kind = LocalDirectory::Kind;
    if (entry.d_type != DT_UNKNOWN) {
        return entry.d_type == DT_REG   ? Kind::regular
               : entry.d_type == DT_DIR ? Kind::directory
                                        : Kind::other;
    }
    struct stat status{};
    if (fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return Kind::other;  // opening it gives the error
    }
    return S_ISREG(status.st_mode)   ? Kind::regular
           : S_ISDIR(status.st_mode) ? Kind::directory
                                     : Kind::other;
}

// Appends the names of a directory. Returns an errno.
int read_names(int directory, std::vector<LocalDirectory::Name>& names) {
    const int duplicate = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) {
        return errno;
    }
    DIR* const stream = fdopendir(duplicate);
    if (stream == nullptr) {
        const int error = errno;
        close(duplicate);
        return error;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> closed_at_end(stream, closedir);
    for (;;) {
        errno = 0;
        const dirent* const entry = readdir(stream);
        if (entry == nullptr) {
            return errno;
        }
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.push_back({std::string(name), kind_of(*entry, directory)});
        }
    }
}

}  // namespace

LocalFile open_file(int directory, const std::string& name) {
    LocalFile file;
    file.file = Descriptor(openat(directory, name.c_str(), kFileFlags));
    if (file.file.number() < 0 || fstat(file.file.number(), &file.status) != 0) {
        file.error = errno;
        return file;
    }
    file.has_xattrs = has_xattrs(file.file.number());
    return file;
}

bool take_unchanged(LocalFile& file, const ArchivedFile& archived) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const struct stat& status = file.status;
    std::int64_t mtime_ns;
    if (file.error != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        static_cast<std::uint64_t>(status.st_size) != archived.size ||
        __builtin_mul_overflow(status.st_mtim.tv_sec, kSecond, &mtime_ns) ||
        __builtin_add_overflow(mtime_ns, status.st_mtim.tv_nsec, &mtime_ns) ||
        mtime_ns != archived.mtime_ns || has_unknown_size(file.file.number(), status)) {
        return false;
    }
    file.archived_ino = archived.ino;
    read_rest(file);
    return true;
}

bool can_be_read_whole(const LocalFile& file, std::uint64_t max_size) {
    const struct stat& status = file.status;
    const bool can_be = file.error == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                        static_cast<std::uint64_t>(status.st_size) <= max_size &&
                        !has_holes(file.file.number(), status) &&
                        !has_unknown_size(file.file.number(), status);
    if (!can_be && file.error == 0 && S_ISREG(status.st_mode)) {
        posix_fadvise(file.file.number(), 0, kReadAhead, POSIX_FADV_WILLNEED);
    }
    return can_be;
}

void read_file(LocalFile& file) try {
    const int descriptor = file.file.number();
    const auto content = std::make_shared<FileContent>();
    content->bytes.resize(static_cast<std::size_t>(file.status.st_size));
    struct stat now{};
    if (read_fully(descriptor, content->bytes, 0) != content->bytes.size() ||
        fstat(descriptor, &now) != 0) {
        return;
    }
    file.has_changed = now.st_size != file.status.st_size ||
                       now.st_mtim.tv_sec != file.status.st_mtim.tv_sec ||
                       now.st_mtim.tv_nsec != file.status.st_mtim.tv_nsec;
    content->examine();
    file.content = content;
    read_rest(file);
} catch (const std::exception&) {
    // A caller that needs the content reads the file again, and gets the error.
}

std::size_t read_range(int descriptor, std::uint64_t offset, std::span<std::uint8_t> out,
                       unsigned num_threads) {
    std::atomic<std::size_t> num_missing = 0;
    const std::size_t num_pieces = (out.size() + kReadAtOnce - 1) / kReadAtOnce;
    parallel_for(num_pieces, num_threads, [&](std::size_t index) {
        const std::size_t start = index * kReadAtOnce;
        const auto piece = out.subspan(start, std::min(kReadAtOnce, out.size() - start));
        const auto missing = piece.subspan(read_fully(descriptor, piece, offset + start));
        std::fill(missing.begin(), missing.end(), std::uint8_t{0});
        num_missing += missing.size();
    });
    return num_missing;
}

LocalDirectory list_directory(int parent, const std::string& name, bool follows_symlink,
                              std::optional<dev_t> device) {
    LocalDirectory listed;
    const int flags = kDirectoryFlags | (follows_symlink ? 0 : O_NOFOLLOW);
    listed.directory = std::make_shared<Descriptor>(openat(parent, name.c_str(), flags));
    const int descriptor = listed.directory->number();
    if (descriptor < 0 || fstat(descriptor, &listed.status) != 0) {
        listed.error = errno;
        return listed;
    }
    listed.has_xattrs = has_xattrs(descriptor);
    if (!device || listed.status.st_dev == *device) {
        listed.error = read_names(descriptor, listed.names);
    }
    std::sort(listed.names.begin(), listed.names.end(),
              [](const auto& left, const auto& right) { return left.name < right.name; });
    return listed;
}

}  // namespace gompfs

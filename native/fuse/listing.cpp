// Implements directory listings; see listing.h.
//
// Names are kept in one string with the end of each name (32 bits, so a directory has at most 4 GiB
// of names). Stored sizes are kept only for files that have holes.
#include "fuse/listing.h"

#include <sys/stat.h>

#include <cstring>
#include <limits>
#include <stdexcept>

namespace gompfs {

namespace {

constexpr std::size_t kNumDots = 2;
// Shift from the type in a mode to the type in a directory entry.
constexpr unsigned kTypeShift = 12;

}  // namespace

Listing::Listing(std::uint64_t node, std::uint32_t cache_seconds) : cache_seconds_(cache_seconds) {
    // The kernel knows both directories and ignores their numbers.
    InodeFields dots{};
    dots.ino = node;
    dots.mode = S_IFDIR;
    add(".", dots);
    add("..", dots);
}

void Listing::add(std::string_view name, const InodeFields& inode, std::uint64_t stored_size) {
    if (names_.size() + name.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw std::length_error("a directory has too many names");
    }
    const std::size_t index = inodes_.size();
    is_sorted_ = is_sorted_ && (index <= kNumDots || name_at(index - 1) < name);
    names_.append(name);
    name_ends_.push_back(static_cast<std::uint32_t>(names_.size()));
    inodes_.push_back(inode);
    if (stored_size < inode.size) {
        stored_sizes_.add({{index, stored_size}});
    }
}

void Listing::pack(std::uint64_t position, std::size_t capacity,
                   std::vector<std::uint8_t>& out) const {
    for (std::size_t index = position; index < inodes_.size(); ++index) {
        const InodeFields& inode = inodes_[index];
        const std::string_view name = name_at(index);
        const std::size_t start = out.size();
        const std::size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + name.size());
        if (start + size > capacity) {
            return;
        }
        fuse_direntplus packed{};
        if (cache_seconds_ != 0 && index >= kNumDots) {
            packed.entry_out = make_entry(inode, stored_size(inode), cache_seconds_);
        }
        packed.dirent.ino = inode.ino;
        packed.dirent.off = index + 1;  // the position of the next entry
        packed.dirent.namelen = static_cast<std::uint32_t>(name.size());
        packed.dirent.type = inode.mode >> kTypeShift & 15;
        out.resize(start + size);
        std::memcpy(out.data() + start, &packed, FUSE_NAME_OFFSET_DIRENTPLUS);
        std::memcpy(out.data() + start + FUSE_NAME_OFFSET_DIRENTPLUS, name.data(), name.size());
    }
}

const InodeFields* Listing::find(std::string_view name) const {
    std::size_t low = kNumDots, high = inodes_.size();
    while (is_sorted_ && low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const int order = name_at(middle).compare(name);
        if (order == 0) {
            return &inodes_[middle];
        }
        (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
    }
    return nullptr;
}

std::size_t Listing::num_bytes() const {
    return sizeof *this + inodes_.capacity() * sizeof(InodeFields) +
           name_ends_.capacity() * sizeof(std::uint32_t) + names_.capacity() +
           stored_sizes_.num_bytes();
}

std::string_view Listing::name_at(std::size_t index) const {
    const std::size_t start = index == 0 ? 0 : name_ends_[index - 1];
    return std::string_view(names_).substr(start, name_ends_[index] - start);
}

}  // namespace gompfs

// Converts an inode of the index to the attributes that the kernel expects (linux/fuse.h).
#pragma once

#include <linux/fuse.h>
#include <sys/sysmacros.h>

#include <cstdint>

namespace gompfs {

// The fields of an inode as the index has them.
struct InodeFields {
    std::uint64_t ino;
    std::uint64_t size;
    std::int64_t mtime_ns;
    std::uint64_t rdev;
    std::uint32_t mode, uid, gid;
    std::uint32_t nlink;
};

// The attributes of an inode. `stored_size` is the number of bytes of a file that are not in holes.
inline fuse_attr make_attributes(const InodeFields& inode, std::uint64_t stored_size) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::uint32_t kBestReadSize = 1 << 20;
    std::int64_t seconds = inode.mtime_ns / kSecond, nanoseconds = inode.mtime_ns % kSecond;
    if (nanoseconds < 0) {  // before 1970
        --seconds;
        nanoseconds += kSecond;
    }
    fuse_attr attributes{};
    attributes.ino = inode.ino;
    attributes.size = inode.size;
    attributes.blocks = stored_size / 512 + (stored_size % 512 != 0);
    attributes.atime = attributes.mtime = attributes.ctime = static_cast<std::uint64_t>(seconds);
    attributes.atimensec = attributes.mtimensec = attributes.ctimensec =
        static_cast<std::uint32_t>(nanoseconds);
    attributes.mode = inode.mode;
    attributes.nlink = inode.nlink;
    attributes.uid = inode.uid;
    attributes.gid = inode.gid;
    const std::uint32_t device_major = major(inode.rdev), device_minor = minor(inode.rdev);
    attributes.rdev = (device_minor & 0xff) | device_major << 8 | (device_minor & ~0xffu) << 12;
    attributes.blksize = kBestReadSize;
    return attributes;
}

// The reply to LOOKUP for an inode. The kernel may cache it for cache_seconds.
inline fuse_entry_out make_entry(const InodeFields& inode, std::uint64_t stored_size,
                                 std::uint32_t cache_seconds) {
    fuse_entry_out entry{};
    entry.nodeid = inode.ino;
    entry.entry_valid = entry.attr_valid = cache_seconds;
    entry.attr = make_attributes(inode, stored_size);
    return entry;
}

}  // namespace gompfs

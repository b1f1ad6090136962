// Replies to requests of the kernel (linux/fuse.h), and how they are sent. Replies that hold
// attributes are in attributes.h, listings in listing.h.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fuse/protocol.h"

namespace gompfs {

template <typename Value>
std::span<const std::uint8_t> bytes_of(const Value& value) {
    return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

// Handles of open files. The mount counts how often files are open that are passed through, or may
// come to be; the kernel must send RELEASE for these.
constexpr std::uint64_t kNotCounted = 0, kCounted = 1;

// The reply to OPEN. With a backing_id, the kernel reads from that backing file; otherwise it keeps
// what it has cached of the file. Closing sends no FLUSH.
inline OpenReply open_reply(bool is_counted, std::optional<std::int32_t> backing_id) {
    return {is_counted ? kCounted : kNotCounted,
            FOPEN_NOFLUSH | (backing_id ? kOpenPassthrough : std::uint32_t{FOPEN_KEEP_CACHE}),
            backing_id.value_or(0)};
}

// The size of a file system that is full.
struct FileSystemSize {
    std::uint64_t num_blocks, num_inodes;
    std::uint32_t io_size, max_name_size, block_size;
};

// The reply to STATFS.
inline fuse_statfs_out statfs_reply(const FileSystemSize& size) {
    fuse_statfs_out reply{};
    reply.st.blocks = size.num_blocks;
    reply.st.files = size.num_inodes;
    reply.st.bsize = size.io_size;
    reply.st.namelen = size.max_name_size;
    reply.st.frsize = size.block_size;
    return reply;
}

// The reply to GETXATTR and LISTXATTR: the value, or its size if `capacity` is 0. Returns nothing
// if the value is larger than `capacity`.
inline std::optional<std::string> xattr_reply(std::string_view value, std::uint32_t capacity) {
    if (capacity == 0) {
        fuse_getxattr_out reply{};
        reply.size = static_cast<std::uint32_t>(value.size());
        return std::string(reinterpret_cast<const char*>(&reply), sizeof reply);
    }
    return value.size() <= capacity ? std::make_optional(std::string(value)) : std::nullopt;
}

// Sends a reply to the request with the number `unique`. `error` is 0 or a negative errno. The
// first of `pieces`, of which there may be IOV_MAX, is reserved for the header; the others have
// `size` bytes. Returns 0 or an errno: the kernel refuses a reply to a request that was aborted in
// the meantime.
int send_reply(int device, std::uint64_t unique, std::int32_t error, std::span<iovec> pieces,
               std::size_t size);
int send_reply(int device, std::uint64_t unique, std::int32_t error,
               std::span<const std::uint8_t> content);

}  // namespace gompfs

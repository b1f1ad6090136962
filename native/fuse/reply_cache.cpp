// Implements the cache of replies; see reply_cache.h.
//
// The key of a reply is the request's body, opcode and node. Only opcodes whose reply depends on
// nothing else are looked up.
#include "fuse/reply_cache.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "fuse/reader_table.h"

namespace gompfs {

namespace {

constexpr std::size_t kOverhead = 128;  // bytes that the table takes per reply

std::string key_of(const Request& request) {
    std::string key(request.body());
    key.append(reinterpret_cast<const char*>(&request.header.opcode), sizeof request.header.opcode);
    key.append(reinterpret_cast<const char*>(&request.header.nodeid), sizeof request.header.nodeid);
    return key;
}

}  // namespace

void ReplyCache::insert(const Request& request, CachedReply reply) {
    std::string key = key_of(request);
    const std::size_t size = key.size() + reply.content.size() + kOverhead;
    const std::unique_lock lock(mutex_);
    if (num_bytes_ + size > max_bytes_) {
        replies_.clear();
        num_bytes_ = 0;
    }
    if (size <= max_bytes_ && replies_.try_emplace(std::move(key), std::move(reply)).second) {
        num_bytes_ += size;
    }
}

void ReplyCache::set_nodes_with_xattrs(std::vector<std::uint64_t> nodes) {
    const std::unique_lock lock(mutex_);
    nodes_with_xattrs_ = std::move(nodes);
}

bool ReplyCache::takes(std::uint32_t opcode) {
    switch (opcode) {
        case FUSE_GETATTR:
        case FUSE_READLINK:
        case FUSE_STATFS:
        case FUSE_GETXATTR:
        case FUSE_LISTXATTR:
            return true;
        default:
            return false;
    }
}

std::optional<CachedReply> ReplyCache::find(const Request& request) const {
    if (!takes(request.header.opcode)) {
        return std::nullopt;
    }
    const std::shared_lock lock(mutex_);
    if (auto reply = without_xattrs(request)) {
        return reply;
    }
    const auto found = replies_.find(key_of(request));
    return found == replies_.end() ? std::nullopt : std::make_optional(found->second);
}

std::optional<CachedReply> ReplyCache::without_xattrs(const Request& request) const {
    const std::uint64_t node = request.header.nodeid;
    if (!nodes_with_xattrs_ || node >= ReaderTable::kFirstVirtual ||
        std::binary_search(nodes_with_xattrs_->begin(), nodes_with_xattrs_->end(), node)) {
        return std::nullopt;
    }
    if (request.header.opcode == FUSE_GETXATTR && !nodes_with_xattrs_->empty()) {
        return CachedReply{-ENODATA, {}};
    }
    // If no entry has extended attributes, the interpreter must answer: its reply (ENOSYS) makes
    // the kernel stop asking.
    const auto list = request.argument<fuse_getxattr_in>();
    if (request.header.opcode != FUSE_LISTXATTR || !list) {
        return std::nullopt;
    }
    // A list request of size 0 asks for the size of the list, which is 0.
    return CachedReply{0, std::string(list->size == 0 ? sizeof(fuse_getxattr_out) : 0, '\0')};
}

}  // namespace gompfs

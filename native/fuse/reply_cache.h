// Replies that stay true for the whole life of a mount, by request.
//
// The content of a mounted archive does not change, so a reply of the interpreter (attributes,
// symlink targets, extended attributes) can be cached and sent again without the interpreter.
// Requests for extended attributes, of which most files have none, are answered from a sorted list
// of the nodes that have any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/request.h"

namespace gompfs {

struct CachedReply {
    std::int32_t error = 0;  // a negative errno, or 0
    std::string content;
};

// Safe for any number of threads.
class ReplyCache {
  public:
    // Caches up to max_bytes bytes of requests and replies. When they are used up, drops all
    // replies and starts again.
    explicit ReplyCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    // Caches a reply of the interpreter, for the same request on the same node.
    void insert(const Request& request, CachedReply reply);

    // Sets the nodes that have extended attributes, sorted. No other entry of the archive has any;
    // virtual entries may have some.
    void set_nodes_with_xattrs(std::vector<std::uint64_t> nodes);

    // Whether replies to requests with this opcode depend on nothing but the request and the node.
    static bool takes(std::uint32_t opcode);

    std::optional<CachedReply> find(const Request& request) const;

  private:
    std::optional<CachedReply> without_xattrs(const Request& request) const;

    const std::size_t max_bytes_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::string, CachedReply> replies_;
    std::size_t num_bytes_ = 0;
    std::optional<std::vector<std::uint64_t>> nodes_with_xattrs_;  // nothing if unknown
};

}  // namespace gompfs

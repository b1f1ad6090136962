// Replies that stay true as long as the mount, by what was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "reading/request.h"

namespace gompfs {

struct KeptReply {
    std::int32_t error = 0;  // a negative errno
    std::string content;
};

// Safe for any number of threads.
class KeptReplies {
  public:
    // Keeps so many bytes of questions and replies, then forgets all and begins again.
    explicit KeptReplies(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    // Keeps the interpreter's reply: it answers whoever asks the same of the same node.
    void insert(const Request& request, KeptReply reply);

    // No entry of the archive but these has extended attributes. They are sorted.
    void set_nodes_with_xattrs(std::vector<std::uint64_t> nodes);

    std::optional<KeptReply> find(const Request& request) const;

  private:
    std::optional<KeptReply> without_xattrs(const Request& request) const;

    const std::size_t max_bytes_;
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::string, KeptReply> replies_;
    std::size_t num_bytes_ = 0;
    std::optional<std::vector<std::uint64_t>> nodes_with_xattrs_;  // unless nobody has said
};

}  // namespace gompfs

// The parts of the kernel's FUSE protocol (linux/fuse.h) that headers before version 7.40 lack, and
// the limits of a mount.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>

namespace gompfs {

constexpr std::uint32_t kMaxRead = 1 << 20;

// The size of the buffer for a request. The kernel requires space for the largest write, though a
// read-only mount gets none.
constexpr std::size_t kRequestCapacity = kMaxRead + (1 << 16);

// Features that the two sides agree on in INIT: bits 32 and above are in fields of their own.
constexpr std::uint64_t kFeatureInitExt = std::uint64_t{1} << 30;
constexpr std::uint64_t kFeaturePassthrough = std::uint64_t{1} << 37;

// Flag of an open file that the kernel reads from a backing file.
constexpr std::uint32_t kOpenPassthrough = 1 << 7;

// The beginning of the request INIT, which all versions of the kernel have.
struct InitRequest {
    std::uint32_t major, minor, max_readahead, features;
};

// fuse_init_out, with max_stack_depth.
struct InitReply {
    std::uint32_t major, minor, max_readahead, features;
    std::uint16_t max_background, congestion_threshold;
    std::uint32_t max_write, time_granularity;
    std::uint16_t max_pages, map_alignment;
    std::uint32_t more_features, max_stack_depth;
    std::uint32_t unused[6];
};
static_assert(sizeof(InitReply) == sizeof(fuse_init_out));

// fuse_open_out, with backing_id.
struct OpenReply {
    std::uint64_t handle;
    std::uint32_t flags;
    std::int32_t backing_id;
};
static_assert(sizeof(OpenReply) == sizeof(fuse_open_out));

}  // namespace gompfs

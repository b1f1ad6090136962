// Implements the answer to INIT; see handshake.h.
#include "fuse/handshake.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "fuse/protocol.h"
#include "fuse/replies.h"
#include "fuse/request.h"

namespace gompfs {

namespace {

constexpr std::uint32_t kMajor = 7, kMinor = 40;
constexpr std::uint32_t kOldestMinor = 23;  // replies to INIT are shorter in older versions
constexpr std::uint16_t kMaxBackground = 64, kCongestionThreshold = 48;

constexpr std::uint64_t kFeatures = FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_AUTO_INVAL_DATA |
                                    FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS | FUSE_DO_READDIRPLUS |
                                    kFeatureInitExt;

std::system_error failure() { return {errno, std::system_category()}; }

std::uint64_t features_of(const Request& request, const InitRequest& init) {
    struct Extended {
        InitRequest init;
        std::uint32_t more_features;
    };
    const auto extended = request.argument<Extended>();
    const bool has_more = (init.features & kFeatureInitExt) != 0 && extended;
    return init.features | (has_more ? std::uint64_t{extended->more_features} << 32 : 0);
}

}  // namespace

Features answer_init(int device, const Features& wanted) {
    std::vector<std::uint8_t> buffer(kRequestCapacity);
    ssize_t size;
    do {
        size = ::read(device, buffer.data(), buffer.size());
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
        throw failure();
    }
    const Request request(std::span(buffer.data(), static_cast<std::size_t>(size)));
    const auto init = request.argument<InitRequest>();
    if (request.header.opcode != FUSE_INIT || !init) {
        throw std::runtime_error("the first request of the kernel is not INIT");
    }
    if (init->major != kMajor || init->minor < kOldestMinor) {
        throw std::runtime_error("the kernel has FUSE protocol version " +
                                 std::to_string(init->major) + "." + std::to_string(init->minor) +
                                 ", which is not supported");
    }
    const std::uint64_t asked = kFeatures | (wanted.passthrough ? kFeaturePassthrough : 0) |
                                (wanted.acls ? FUSE_POSIX_ACL : 0);
    const std::uint64_t features = asked & features_of(request, *init);
    const bool has_passthrough = (features & kFeaturePassthrough) != 0;
    InitReply reply{};
    reply.major = kMajor;
    reply.minor = kMinor;
    reply.max_readahead = init->max_readahead;
    reply.features = static_cast<std::uint32_t>(features);
    reply.max_background = kMaxBackground;
    reply.congestion_threshold = kCongestionThreshold;
    reply.max_write = kMaxRead;
    reply.time_granularity = 1;
    reply.max_pages = static_cast<std::uint16_t>(kMaxRead / sysconf(_SC_PAGESIZE));
    reply.more_features = static_cast<std::uint32_t>(features >> 32);
    reply.max_stack_depth = has_passthrough ? 1 : 0;
    if (const int error = send_reply(device, request.header.unique, 0, bytes_of(reply))) {
        errno = error;
        throw failure();
    }
    return {has_passthrough, (features & FUSE_POSIX_ACL) != 0};
}

}  // namespace gompfs

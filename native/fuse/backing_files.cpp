// Implements the registration of backing files; see backing_files.h.
//
// The two ioctls of /dev/fuse are defined here because headers before version 7.40 lack them.
#include "fuse/backing_files.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <system_error>

namespace gompfs {

namespace {

constexpr unsigned kFuseIoctls = 229;

struct BackingMap {
    std::int32_t descriptor;
    std::uint32_t flags;
    std::uint64_t padding;
};

int check(int result) {
    if (result < 0) {
        throw std::system_error(errno, std::system_category());
    }
    return result;
}

}  // namespace

std::int32_t register_backing_file(int device, int descriptor) {
    BackingMap map{descriptor, 0, 0};
    return check(ioctl(device, _IOW(kFuseIoctls, 1, BackingMap), &map));
}

void unregister_backing_file(int device, std::int32_t backing_id) {
    check(ioctl(device, _IOW(kFuseIoctls, 2, std::uint32_t), &backing_id));
}

}  // namespace gompfs

// Implements the sending of replies; see replies.h.
#include "fuse/replies.h"

#include <linux/fuse.h>

#include <cerrno>

namespace gompfs {

int send_reply(int device, std::uint64_t unique, std::int32_t error, std::span<iovec> pieces,
               std::size_t size) {
    fuse_out_header header{static_cast<std::uint32_t>(sizeof header + size), error, unique};
    pieces[0] = {&header, sizeof header};
    return writev(device, pieces.data(), static_cast<int>(pieces.size())) < 0 ? errno : 0;
}

int send_reply(int device, std::uint64_t unique, std::int32_t error,
               std::span<const std::uint8_t> content) {
    iovec pieces[] = {{}, {const_cast<std::uint8_t*>(content.data()), content.size()}};
    return send_reply(device, unique, error, pieces, content.size());
}

}  // namespace gompfs

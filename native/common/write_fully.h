// Writes a range of an open file.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "common/bytes.h"

namespace gompfs {

// Writes all bytes to a file from an offset on. Throws std::system_error.
inline void write_fully(int descriptor, Bytes bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t count =
            ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(count));
            offset += static_cast<std::uint64_t>(count);
        } else if (errno != EINTR) {
            throw std::system_error(errno, std::generic_category());
        }
    }
}

}  // namespace gompfs

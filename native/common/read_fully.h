// Reads a range of an open file.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>

namespace gompfs {

// Fills `out` with the bytes of a file from an offset on. Returns how many there are, fewer only at
// the end of the file. Throws std::system_error.
inline std::size_t read_fully(int descriptor, std::span<std::uint8_t> out, std::uint64_t offset) {
    std::size_t size = 0;
    while (size < out.size()) {
        const ssize_t count = ::pread(descriptor, out.data() + size, out.size() - size,
                                      static_cast<off_t>(offset + size));
        if (count > 0) {
            size += static_cast<std::size_t>(count);
        } else if (count == 0) {
            break;
        } else if (errno != EINTR) {
            throw std::system_error(errno, std::generic_category());
        }
    }
    return size;
}

}  // namespace gompfs

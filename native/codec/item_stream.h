// A stream of gompresso-tadoc and where the next item of each of its 32 sub-blocks begins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gompfs {

constexpr std::size_t kItemWindowBits = 57;  // of a sub-block that a load of 64 bits has at least

// A stream, and the position of each sub-block's next item, in bits. The positions must not be
// after the end of the stream, and 8 bytes after the stream must be readable.
struct ItemStream {
    const std::uint8_t* bytes;
    std::uint32_t num_bits;
    std::uint32_t* positions;
};

}  // namespace gompfs

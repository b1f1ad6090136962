// Why bytes could not be read.
#pragma once

#include <cstdint>

#include "codec/block.h"

namespace gompfs {

// `block` and `status` are set for damaged_block only.
struct ReadFailure {
    enum class Reason : std::uint8_t {
        none,
        no_such_file,
        impossible_extents,
        outside_stream,   // an extent lies outside the stream
        outside_segment,  // an extent crosses the end of a segment, whose last block is short
        damaged_block,
        missing_block,  // not cached, and there is nothing to decode it
    };

    Reason reason = Reason::none;
    std::uint64_t block = 0;
    BlockStatus status = BlockStatus::ok;

    explicit operator bool() const { return reason != Reason::none; }
};

}  // namespace gompfs

// Copies between pinned memory and other memory of the host, on several threads.
//
// A GPU reads and writes pinned memory at the speed of the bus. The host copies what belongs into
// other memory, and one thread copies more slowly than the bus.
#pragma once

#include <cstdint>
#include <span>

#include "common/bytes.h"

namespace gompfs {

struct CopiedRun {
    std::uint64_t source_offset;
    std::uint64_t target_offset;
    std::uint64_t size;
};

// Copies runs of bytes, which must not overlap in the target. Throws std::invalid_argument, before
// anything is copied, if a run is not inside the source and the target.
void copy_runs(Bytes source, MutableBytes target, std::span<const CopiedRun> runs,
               unsigned num_threads);

}  // namespace gompfs

// The bytes that a content has in common with another one, such as the version of a file before.
//
// Runs of bytes that both have, in the order of the content. They do not overlap there. A run may
// begin and end anywhere, also inside of a word or of a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/bytes.h"

namespace gompfs {

struct SharedRun {
    std::size_t begin, base_begin, size;
    bool operator==(const SharedRun&) const = default;
};

// Finds runs of at least `least` bytes, which is at least kLeastSharedRun. The time is limited by
// the sizes, whatever the bytes are.
constexpr std::size_t kLeastSharedRun = 32;
std::vector<SharedRun> shared_runs(Bytes content, Bytes base, std::size_t least);

}  // namespace gompfs

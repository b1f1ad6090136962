// Reads bytes of an archive for code that does not know where they come from.
#pragma once

#include <cstdint>
#include <functional>

#include "common/large_vector.h"

namespace gompfs {

using FetchedBytes = LargeVector<std::uint8_t>;  // which is not cleared before it is read into

// Returns the bytes from an offset on; fewer at the end of the archive. May throw. Any thread may
// call it.
using Fetch = std::function<FetchedBytes(std::uint64_t offset, std::uint64_t size)>;

}  // namespace gompfs

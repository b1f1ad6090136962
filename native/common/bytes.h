// Views of bytes.
#pragma once

#include <cstdint>
#include <span>

namespace gompfs {

using Bytes = std::span<const std::uint8_t>;
using MutableBytes = std::span<std::uint8_t>;

}  // namespace gompfs

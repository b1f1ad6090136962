// Chooses a dictionary for content, from samples of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.h"

namespace gompfs {

// Returns at most `size` bytes of the samples, the most useful first; fewer, or none, if not so
// much of them occurs repeatedly. The same samples always give the same bytes. Throws
// std::invalid_argument if `size` exceeds kMaxDictionarySize.
std::vector<std::uint8_t> choose_dictionary(std::span<const Bytes> samples, std::size_t size,
                                            unsigned num_threads);

}  // namespace gompfs

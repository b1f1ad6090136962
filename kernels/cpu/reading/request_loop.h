// Takes the kernel's requests from a FUSE device, and answers those that need no interpreter: reads
// of decoded blocks, and what is asked of the directories that are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reading/block_reader.h"
#include "reading/listing.h"

namespace gompfs {

// Called with a request that is for the interpreter to answer.
using Forward = std::function<void(std::span<const std::uint8_t>)>;

// Answers until the mount is gone; any number of threads may run this. Returns 0 then, or the errno
// of a device that cannot be read.
int answer_requests(int device, BlockReader& reader, const ListingTable& listings,
                    std::size_t buffer_size, const Forward& forward);

}  // namespace gompfs

// Takes requests of the kernel from a FUSE device and answers those that need no interpreter: reads
// of available blocks, listings and lookups in cached directories, and requests whose reply is
// cached. All other requests are forwarded to the interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "fuse/listing_table.h"
#include "fuse/reader_table.h"
#include "fuse/reply_cache.h"

namespace gompfs {

// The tables from which requests are answered. `readers` must have a current reader.
struct Sources {
    const ReaderTable& readers;
    ListingTable& listings;
    const ReplyCache& replies;
};

// Called with a request that the interpreter must answer.
using Forward = std::function<void(std::span<const std::uint8_t>)>;

// Answers requests until the mount is gone. Any number of threads may run this at once. Returns 0
// at the end of the mount, or the errno if the device cannot be read.
int answer_requests(int device, Sources sources, const Forward& forward);

}  // namespace gompfs

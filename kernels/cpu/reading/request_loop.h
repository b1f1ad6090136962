// Takes the kernel's requests from a FUSE device, and answers those that need no interpreter: reads
// of decoded blocks, entries and names of directories that are kept, and what was answered before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reading/kept_replies.h"
#include "reading/listing_table.h"
#include "reading/reader_table.h"

namespace gompfs {

// What requests are answered from. The table of readers has a current one.
struct Sources {
    const ReaderTable& readers;
    ListingTable& listings;
    const KeptReplies& replies;
};

// Called with a request that is for the interpreter to answer.
using Forward = std::function<void(std::span<const std::uint8_t>)>;

// Answers until the mount is gone; any number of threads may run this. Returns 0 then, or the errno
// of a device that cannot be read.
int answer_requests(int device, Sources sources, std::size_t buffer_size, const Forward& forward);

}  // namespace gompfs

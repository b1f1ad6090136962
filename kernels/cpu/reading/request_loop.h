// Takes the kernel's requests from a FUSE device, and answers reads of decoded blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reading/reader_table.h"

namespace gompfs {

// Called with a request that is for the interpreter to answer.
using Forward = std::function<void(std::span<const std::uint8_t>)>;

// Answers until the mount is gone; any number of threads may run this. Returns 0 then, or the errno
// of a device that cannot be read. The table has a current reader.
int answer_requests(int device, const ReaderTable& readers, std::size_t buffer_size,
                    const Forward& forward);

}  // namespace gompfs

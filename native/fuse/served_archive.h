// One archive that a mount shows, and what the mount counts about it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "blocks/block_reader.h"
#include "fuse/request_times.h"

namespace gompfs {

// Safe for any number of threads.
struct ServedArchive {
    explicit ServedArchive(std::shared_ptr<BlockReader> block_reader)
        : reader(std::move(block_reader)) {}

    const std::shared_ptr<BlockReader> reader;
    RequestTimes times;
    std::atomic<std::uint64_t> num_read_bytes = 0;  // that requests returned
};

}  // namespace gompfs

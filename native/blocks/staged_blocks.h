// Reads compressed blocks for a device: each to an aligned address in memory that is copied there.
//
// A block is checked against its checksum where it lies, so that the device decodes only payloads
// that are as they were written, or were forged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/block.h"
#include "common/descriptor.h"
#include "common/parallel.h"

namespace gompfs {

// A block to read: where it is in the archive, what it should be, and its offset in the memory.
struct WantedBlock {
    std::uint64_t archive_offset;
    std::uint32_t compressed_size;  // with the header
    std::uint32_t uncompressed_size;
    Supplement supplement;
    std::uint64_t target;
};

// What the header of a block says. If `status` is not ok, the rest is zeros.
// gompfs.archive.staged_blocks reads arrays of these records.
struct StagedBlock {
    std::uint32_t status;  // a BlockStatus
    std::uint32_t codec;
    std::uint32_t payload_size;
    std::uint32_t uncompressed_size;
    std::uint64_t content_xxh3;
    std::uint64_t block_xxh3;
};

// Reads blocks from a file to their targets in `out`, and checks them. Threads of the pool begin at
// once; `out` must live as long as this object.
class BlockStaging {
  public:
    // Without a file, the blocks are at their targets already. Throws std::invalid_argument if a
    // block is not inside `out`.
    BlockStaging(Descriptor file, std::vector<WantedBlock> blocks, MutableBytes out,
                 unsigned num_threads);

    // Takes part in the work until all of it is done. A block that ends after the end of the file
    // has a bad header. Throws std::system_error if the file cannot be read, and Cancelled.
    const std::vector<StagedBlock>& wait();

  private:
    struct Stage {
        BlockStaging& staging;
        void operator()(std::size_t group) const { staging.stage_group(group); }
    };

    void stage_group(std::size_t group);

    const Descriptor file_;
    const std::vector<WantedBlock> blocks_;
    const MutableBytes out_;
    std::vector<StagedBlock> staged_;
    std::optional<ParallelLoop<Stage>> loop_;  // the last member: its threads use the others
};

}  // namespace gompfs

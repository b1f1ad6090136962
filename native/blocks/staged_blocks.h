// Reads compressed blocks for a device, from a file or other memory: each to an aligned address in
// memory that is copied to the device.
//
// A block is checked against its checksum in the staging memory, so that the device decodes only
// payloads that are as they were written, or were forged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/block.h"
#include "codec/block_batch.h"
#include "common/bytes.h"
#include "common/descriptor.h"
#include "common/parallel.h"

namespace gompfs {

// A block to read: its position in the archive, its expected header, and its offset in the memory.
struct WantedBlock {
    std::uint64_t archive_offset;
    std::uint32_t compressed_size;  // with the header
    std::uint32_t uncompressed_size;
    Supplement supplement;
    std::uint64_t target;
};

// Reads blocks to their targets in `out`, and checks them. Threads of the pool begin at once; `out`
// must live as long as this object.
class BlockStaging {
  public:
    // Without a file, copies block i from memory[i], which must live as long as this object. Throws
    // std::invalid_argument if a block is not inside `out`, or has another size in memory.
    BlockStaging(Descriptor file, std::span<const Bytes> memory, std::vector<WantedBlock> blocks,
                 MutableBytes out, unsigned num_threads);

    // Takes part in the work until all of it is done. A block that ends after the end of the file
    // has a bad header. Throws std::system_error if the file cannot be read, and Cancelled. Of
    // a block that is not ok, only the status is set; all other facts are 0.
    const std::vector<BlockFacts>& wait();

  private:
    struct Stage {
        BlockStaging& staging;
        void operator()(std::size_t group) const { staging.stage_group(group); }
    };

    void stage_group(std::size_t group);

    std::size_t read_run(std::size_t first, std::span<const WantedBlock> run) const;

    const Descriptor file_;
    const std::span<const Bytes> memory_;
    const std::vector<WantedBlock> blocks_;
    const MutableBytes out_;
    std::vector<BlockFacts> staged_;
    std::optional<ParallelLoop<Stage>> loop_;  // the last member: its threads use the others
};

}  // namespace gompfs

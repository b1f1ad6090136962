// Decodes the blocks that a BlockSource cannot decode: those of an archive that is not a local
// file, or that another engine than the CPU decodes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codec/block.h"
#include "common/bytes.h"

namespace gompfs {

// Any number of threads may call `decode` at once.
class BlockDecoder {
  public:
    struct Decoded {
        Bytes content;  // at most the block size; empty unless `status` is ok
        BlockStatus status;
    };
    using Use = std::function<void(std::span<const Decoded>)>;

    explicit BlockDecoder(std::uint64_t batch_bytes) : batch_bytes(batch_bytes) {}
    virtual ~BlockDecoder() = default;

    // How many bytes of blocks one call should decode.
    const std::uint64_t batch_bytes;

    // Decodes blocks, whose numbers ascend, in one go. Then calls `use` once, with one element for
    // each block; the contents are valid during that call. Throws if the blocks cannot be read.
    virtual void decode(const std::vector<std::uint64_t>& numbers, const Use& use) = 0;
};

}  // namespace gompfs

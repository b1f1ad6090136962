// Decodes blocks of a local archive on the CPU, for threads without the interpreter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "common/decode_work.h"
#include "reading/block_cache.h"

namespace gompfs {

// Blocks from first_block on, and where they lie in the archive: gompfs.model.Segment.
struct StoredSegment {
    std::uint64_t first_block;
    std::uint64_t uncompressed_size;
    std::vector<std::uint64_t> archive_offsets;
    std::vector<std::uint32_t> compressed_sizes;
};

class BlockSource {
  public:
    // Closes the descriptor at its end. Segments follow each other, without a gap.
    BlockSource(int descriptor, std::uint64_t block_size, std::vector<StoredSegment> segments,
                bool verify, std::shared_ptr<DecodeWork> work)
        : descriptor_(descriptor),
          block_size_(block_size),
          segments_(std::move(segments)),
          verify_(verify),
          work_(std::move(work)) {}
    ~BlockSource();
    BlockSource(const BlockSource&) = delete;
    BlockSource& operator=(const BlockSource&) = delete;

    // Decodes blocks from `first` on, up to the first one before `end` that somebody else has or
    // decodes; they are in the cache then, and returned in order, nothing for those that cannot be
    // read or are damaged. May stop sooner.
    std::vector<BlockCache::Block> load(BlockCache& cache, std::uint64_t first, std::uint64_t end);

    // Decodes a part of the stream that has these blocks to `out`; false where one of them cannot
    // be read or is damaged.
    bool decode_into(std::uint64_t stream_offset, MutableBytes out) const;

    // How many blocks one call decodes at most.
    std::uint64_t max_run() const { return std::max<std::uint64_t>(kRunBytes / block_size_, 1); }

  private:
    // What the cache of a processor still has when it is read.
    static constexpr std::uint64_t kRunBytes = 1 << 20;

    struct Place {
        std::uint64_t archive_offset;
        std::uint32_t compressed_size;
        std::uint32_t uncompressed_size;
    };

    Place place_of(std::uint64_t number) const;
    std::vector<Place> neighbours(std::uint64_t first, std::uint64_t end) const;
    Bytes read_run(const std::vector<Place>& places) const;
    static Bytes block_of(Bytes run, const Place& place, const Place& first);
    bool decode(Bytes block, MutableBytes content) const;
    bool decode_part_into(const Place& place, Bytes block, std::uint64_t begin,
                          std::uint64_t stream_offset, MutableBytes out) const;

    const int descriptor_;
    const std::uint64_t block_size_;
    const std::vector<StoredSegment> segments_;
    const bool verify_;
    const std::shared_ptr<DecodeWork> work_;
};

}  // namespace gompfs

// Decodes blocks of a local archive on the CPU, for threads that do not hold the GIL.
//
// A source knows the archive offset and the compressed size of every block. Neighbouring blocks are
// read with one pread and decoded one after another. The decoded blocks go into the cache (load) or
// straight into the caller's memory (decode_into).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "blocks/block_cache.h"
#include "blocks/read_failure.h"
#include "codec/block.h"
#include "common/bytes.h"
#include "common/decode_work.h"
#include "text/part_heads.h"

namespace gompfs {

// The blocks from first_block on, and their archive offsets and sizes; see gompfs.model.Segment.
// The last block of each part of a segment may be shorter than the block size.
struct StoredSegment {
    std::uint64_t first_block;
    std::vector<std::uint64_t> archive_offsets;
    std::vector<std::uint32_t> compressed_sizes;
    std::vector<std::uint32_t> uncompressed_sizes;

    std::uint64_t end_block() const { return first_block + archive_offsets.size(); }
};

// A block that was decoded, or nullptr and the reason.
struct LoadedBlock {
    BlockCache::Block block;
    BlockStatus status = BlockStatus::ok;
};

class BlockSource {
  public:
    // Takes ownership of the descriptor and closes it in the destructor. Each segment must begin
    // where the one before it ends. `heads` opens the heads of their parts.
    BlockSource(int descriptor, std::uint64_t block_size, std::vector<StoredSegment> segments,
                std::shared_ptr<PartHeads> heads, bool verify, std::shared_ptr<DecodeWork> work)
        : descriptor_(descriptor),
          block_size_(block_size),
          segments_(std::move(segments)),
          heads_(std::move(heads)),
          verify_(verify),
          work_(std::move(work)) {}
    ~BlockSource();
    BlockSource(const BlockSource&) = delete;
    BlockSource& operator=(const BlockSource&) = delete;

    // Decodes blocks from `first` on, up to the first block before `end` that is cached or that
    // another thread is decoding. Inserts the sound blocks into the cache and returns all in order.
    // May stop before `end`. Throws std::system_error if the file cannot be read.
    std::vector<LoadedBlock> load(BlockCache& cache, std::uint64_t first, std::uint64_t end);

    // Decodes out.size() bytes of the stream from stream_offset on into `out`. Throws
    // std::system_error if the file cannot be read.
    ReadFailure decode_into(std::uint64_t stream_offset, MutableBytes out) const;

    // Decodes blocks with ascending numbers; reads those at once that lie next to each other. Calls
    // memory_for(index, size) before block numbers[index] is decoded, for the memory that it is
    // decoded into, and done(index, content) after it. Stops at the first failure: of a block, or
    // one that `done` returns. Throws std::system_error if the file cannot be read.
    ReadFailure decode_each(
        std::span<const std::uint64_t> numbers,
        const std::function<MutableBytes(std::size_t index, std::size_t size)>& memory_for,
        const std::function<ReadFailure(std::size_t index, Bytes content)>& done) const;

    // Calls take(block, uncompressed_size, is_last) for each block from `first` on, as it is
    // stored, until `take` returns false. Returns true if all blocks exist and `take` returned true
    // for each. A block is shorter if the file ends early. Throws std::system_error if the file
    // cannot be read.
    bool for_each_stored(std::uint64_t first, std::uint64_t end,
                         const std::function<bool(Bytes block, std::uint32_t uncompressed_size,
                                                  bool is_last)>& take) const;

    // Has the system begin to read the head that a block needs, so that it is on its way while the
    // block itself is read. For single blocks: where heads are read one after another, the system
    // reads ahead by itself, and in larger pieces.
    void announce_head(std::uint64_t number) const;

    // The most blocks that one call of load decodes.
    std::uint64_t max_run() const { return std::max<std::uint64_t>(kRunBytes / block_size_, 1); }

  private:
    // A run of this size is still in the processor's cache when its blocks are decoded.
    static constexpr std::uint64_t kRunBytes = 1 << 20;

    struct Position {
        std::uint64_t archive_offset;
        std::uint32_t compressed_size;
        std::uint32_t uncompressed_size;
    };

    Position position_of(std::uint64_t number) const;
    std::vector<Position> neighbours(std::uint64_t first, std::uint64_t end) const;
    Bytes read_run(const std::vector<Position>& positions) const;
    static Bytes block_of(Bytes run, const Position& position, const Position& first);
    BlockStatus decode(std::uint64_t number, Bytes block, MutableBytes content) const;
    BlockStatus decode_part_into(std::uint64_t number, const Position& position, Bytes block,
                                 std::uint64_t stream_offset, MutableBytes out) const;

    const int descriptor_;
    const std::uint64_t block_size_;
    const std::vector<StoredSegment> segments_;
    const std::shared_ptr<PartHeads> heads_;
    const bool verify_;
    const std::shared_ptr<DecodeWork> work_;
};

}  // namespace gompfs

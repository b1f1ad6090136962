// Reads files of an archive: all that turns a range of a file into bytes, for mounts,
// for the commands and for the Python interface.
//
// A read is translated in three steps: range to pieces of the stream (LayoutTable), pieces to
// blocks (BlockCache), and missing blocks to decoded ones. Blocks are decoded by a BlockSource, in
// C++, if the archive is a local file and the CPU decodes; by a BlockDecoder otherwise. The result
// is a list of pieces of memory that point into cached blocks, with references that keep the blocks
// alive; nothing is copied. Every read is reported to ReadAhead, whose wishes a thread fulfils
// through `load`.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "blocks/block_cache.h"
#include "blocks/block_decoder.h"
#include "blocks/block_source.h"
#include "blocks/claims.h"
#include "blocks/file_layouts.h"
#include "blocks/range_plan.h"
#include "blocks/read_ahead.h"
#include "blocks/read_failure.h"
#include "common/bytes.h"

namespace gompfs {

// The result of a read: pieces of memory, and the blocks that the memory belongs to.
struct ReadPieces {
    std::vector<iovec> pieces;
    std::vector<BlockCache::Block> blocks;
    std::size_t size = 0;
};

class BlockReader {
  public:
    BlockReader(std::uint64_t num_blocks, std::uint64_t block_size, std::uint64_t capacity)
        : cache(block_size, capacity),
          read_ahead(num_blocks, block_size, capacity),
          num_blocks_(num_blocks),
          block_size_(block_size) {}

    // Lets reads decode blocks from a local file.
    void read_from(std::shared_ptr<BlockSource> source);

    // Sets what decodes blocks if there is no source, and how many threads copy what it decoded
    // into the cache. Must be called before other threads use this.
    void decode_with(std::unique_ptr<BlockDecoder> decoder, unsigned num_threads);

    // Finds the layout of a file. Throws what LayoutTable::Find throws, except that impossible
    // extents are a failure.
    ReadFailure find_file(std::uint64_t ino, std::shared_ptr<const FileLayout>& file);

    // Appends up to `size` bytes of a file from file_offset on. After a failure, the pieces are
    // undefined. Throws what the BlockDecoder and LayoutTable::Find throw, and std::bad_alloc.
    ReadFailure read_pieces(std::uint64_t ino, std::uint64_t file_offset, std::uint64_t size,
                            ReadPieces& out);

    // Like read_pieces, but returns false if that fails or throws.
    bool read(std::uint64_t ino, std::uint64_t file_offset, std::uint64_t size, ReadPieces& out);

    // Decodes a part of a file into `out`, which holds zeros, on several threads, without using the
    // cache. `use_source` says whether a source, if there is one, may decode. After a failure,
    // `out` holds arbitrary bytes. Throws as read_pieces does, and std::system_error.
    ReadFailure decode_into(std::uint64_t ino, std::uint64_t file_offset, MutableBytes out,
                            unsigned num_threads, bool use_source);

    // Decodes blocks from `first` on, of these sizes, into `out`, one after another; on several
    // threads, by the source, which must be there, without using the cache. After a failure, `out`
    // holds arbitrary bytes. Throws std::invalid_argument if `out` is too small, std::bad_alloc and
    // std::system_error.
    ReadFailure decode_blocks(std::uint64_t first, std::span<const std::uint32_t> sizes,
                              MutableBytes out, unsigned num_threads);

    // Decodes the ranges of a plan, whose pieces were found, into `out`, which has their size; on
    // several threads, without using the cache. Each block is decoded once. After a failure, `out`
    // holds arbitrary bytes. Throws as decode_into does.
    ReadFailure decode_ranges(const RangePlan& plan, MutableBytes out, unsigned num_threads,
                              bool use_source);

    // Sets the number of blocks to cache, and limits read-ahead accordingly.
    void set_capacity(std::uint64_t capacity);

    // Stops decoding, both ahead and for reads. The archive is closed once no thread uses it.
    void close();

    // Decodes the given blocks that are neither cached nor claimed, on several threads, and returns
    // how many there were. Numbers must ascend. `use_source` as in decode_into.
    std::uint64_t load(const std::vector<std::uint64_t>& numbers, unsigned num_threads,
                       bool use_source);

    // What decodes blocks; nullptr if it is a BlockDecoder.
    std::shared_ptr<BlockSource> source();
    bool has_source() { return source() != nullptr; }

    std::uint64_t block_size() const { return block_size_; }
    std::uint64_t num_blocks() const { return num_blocks_; }

    BlockCache cache;
    ReadAhead read_ahead;
    LayoutTable layouts;
    std::atomic<std::uint64_t> max_ahead = 0;  // how many blocks are worth decoding ahead at once
    std::atomic<std::uint64_t> num_hits = 0;
    std::atomic<std::uint64_t> num_misses = 0;  // blocks that were decoded for reads

  private:
    ReadFailure append_blocks(const StreamRead& read, ReadPieces& out);
    void append_zeros(std::uint64_t size, ReadPieces& out);
    ReadFailure find_or_load(std::uint64_t first, std::uint64_t end, std::int64_t ahead,
                             std::vector<BlockCache::Block>& blocks, std::uint64_t& hits);
    std::vector<LoadedBlock> decode_around(std::uint64_t number, std::uint64_t end,
                                           std::int64_t ahead);
    std::vector<LoadedBlock> decode_claimed(Claims& claims);
    std::uint64_t load_from(BlockSource& source, const std::vector<std::uint64_t>& numbers,
                            unsigned num_threads);
    ReadFailure decode_range(std::uint64_t stream_offset, MutableBytes out, unsigned num_threads,
                             bool use_source);
    ReadFailure decode_pieces(BlockSource& source, const RangePlan& plan, MutableBytes out,
                              unsigned num_threads);
    ReadFailure decode_pieces(BlockDecoder& decoder, const RangePlan& plan, MutableBytes out,
                              unsigned num_threads);
    ReadFailure decode_from(BlockSource& source, std::uint64_t stream_offset, MutableBytes out,
                            unsigned num_threads);
    std::optional<BlockStatus> damage_of(std::uint64_t number);
    ReadFailure note_damage(std::uint64_t number, BlockStatus status);

    const std::uint64_t num_blocks_;
    const std::uint64_t block_size_;
    std::unique_ptr<BlockDecoder> decoder_;
    unsigned num_threads_ = 1;
    std::shared_mutex mutex_;  // protects source_
    std::shared_ptr<BlockSource> source_;
    std::mutex damage_mutex_;  // protects damage_
    std::unordered_map<std::uint64_t, BlockStatus> damage_;
};

}  // namespace gompfs

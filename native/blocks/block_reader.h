// Answers reads of files without the interpreter's lock: from cached blocks and, if there is a
// source, from blocks that it decodes itself.
//
// A read is translated in two steps: file offset to extents of the stream (FileLayout), then stream
// offset to blocks. The result is a list of pieces of memory that point into cached blocks, with
// references that keep the blocks alive; nothing is copied. If the file is unknown or a block is
// missing, the read is left to the interpreter. Every read is reported to ReadAhead, whose wishes a
// thread of the mount fulfils through `load`.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "blocks/block_cache.h"
#include "blocks/block_source.h"
#include "blocks/read_ahead.h"
#include "blocks/request_times.h"

namespace gompfs {

struct FileExtent {
    std::uint64_t file_offset;
    std::uint64_t stream_offset;
    std::uint64_t size;
};

struct FileLayout {
    std::uint64_t size;
    std::vector<FileExtent> extents;  // sorted by file_offset; the rest is zeros
};

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

    // Adds the layouts of files. The layout of an archive's file never changes.
    void add_files(std::vector<std::pair<std::uint64_t, FileLayout>> layouts);
    bool knows(std::uint64_t node);

    // Appends up to `size` bytes of a file from file_offset on. Returns false if the file is
    // unknown or a block is not available; the pieces are then undefined and the interpreter must
    // answer.
    bool read(std::uint64_t node, std::uint64_t file_offset, std::uint64_t size, ReadPieces& out);

    // Whether a file is known and smaller than open_below.
    bool is_small(std::uint64_t node);

    // Lets reads decode blocks that are neither cached nor claimed.
    void read_from(std::shared_ptr<BlockSource> source);

    // Sets the number of blocks to cache, and limits read-ahead accordingly.
    void set_capacity(std::uint64_t capacity);

    // Stops decoding, both ahead and for reads. The archive is closed once no thread uses it.
    void close();

    // Returns the blocks [first, end) of the stream, up to the first one that is not cached and
    // cannot be decoded here. Adds the number of blocks found in the cache to `hits`.
    std::vector<BlockCache::Block> find_or_load(std::uint64_t first, std::uint64_t end,
                                                std::uint64_t& hits);

    // Decodes the given blocks that are neither cached nor claimed, on several threads. Numbers
    // must ascend.
    void load(const std::vector<std::uint64_t>& numbers, unsigned num_threads);

    // Decodes a part of the stream into `out`, on several threads, without using the cache. Returns
    // false, with undefined bytes in `out`, if there is no source or decoding fails.
    bool decode_into(std::uint64_t stream_offset, MutableBytes out, unsigned num_threads);

    std::uint64_t block_size() const { return block_size_; }

    BlockCache cache;
    ReadAhead read_ahead;
    std::atomic<std::uint64_t> open_below = 0;  // in bytes; 0: the interpreter opens all files
    std::atomic<std::uint64_t> max_ahead = 0;
    std::atomic<std::uint64_t> num_hits = 0;
    std::atomic<std::uint64_t> num_misses = 0;  // blocks that were decoded here
    std::atomic<std::uint64_t> num_read_bytes = 0;
    RequestTimes times;

  private:
    std::shared_ptr<BlockSource> source();
    std::shared_ptr<const FileLayout> find_file(std::uint64_t node);
    bool append_blocks(const StreamRead& read, ReadPieces& out);
    bool append_zeros(std::uint64_t size, ReadPieces& out);

    const std::uint64_t num_blocks_;
    const std::uint64_t block_size_;
    std::shared_mutex mutex_;  // protects the members below
    std::shared_ptr<BlockSource> source_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const FileLayout>> files_;
};

}  // namespace gompfs

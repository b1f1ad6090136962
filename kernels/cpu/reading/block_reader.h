// Answers reads of files without the interpreter: from decoded blocks, and where there is a source,
// from those that it decodes.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reading/block_cache.h"
#include "reading/block_source.h"
#include "reading/read_ahead.h"
#include "reading/request_times.h"

namespace gompfs {

struct FileExtent {
    std::uint64_t file_offset;
    std::uint64_t stream_offset;
    std::uint64_t size;
};

struct FileLayout {
    std::uint64_t size;
    std::vector<FileExtent> extents;  // by file_offset; what none covers is zeros
};

// What a read gives: pieces of memory, and the blocks that keep it.
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

    // Makes files known; the layout of an archive's file never changes.
    void add_files(std::vector<std::pair<std::uint64_t, FileLayout>> layouts);
    bool knows(std::uint64_t node);

    // Appends up to size bytes of a file from file_offset on. False, with the pieces in any state,
    // where the file is not known or a block is not there: then it is for the interpreter.
    bool read(std::uint64_t node, std::uint64_t file_offset, std::uint64_t size, ReadPieces& out);

    // Whether a file is known to be smaller than open_below.
    bool is_small(std::uint64_t node);

    // From now on, reads decode by themselves what nobody has.
    void read_from(std::shared_ptr<BlockSource> source);

    // Keeps so many blocks from now on, and decodes no more ahead than they have room for.
    void set_capacity(std::uint64_t capacity);

    // Decodes no more, neither ahead nor for reads; the archive is closed when nobody is at it.
    void close();

    // Blocks `first` to `end` - 1 of the stream, up to the first one that is not there and cannot
    // be decoded here. Those that were there are added to hits.
    std::vector<BlockCache::Block> find_or_load(std::uint64_t first, std::uint64_t end,
                                                std::uint64_t& hits);

    // Decodes blocks that nobody has, on several threads, whose numbers rise.
    void load(const std::vector<std::uint64_t>& numbers, unsigned num_threads);

    // Decodes a part of the stream to `out`, on several threads and past the cache. False, with any
    // bytes in `out`, where there is no source, or it cannot.
    bool decode_into(std::uint64_t stream_offset, MutableBytes out, unsigned num_threads);

    std::uint64_t block_size() const { return block_size_; }

    BlockCache cache;
    ReadAhead read_ahead;
    std::atomic<std::uint64_t> open_below =
        0;  // in bytes; 0: all files are for the interpreter to open
    std::atomic<std::uint64_t> max_ahead = 0;
    std::atomic<std::uint64_t> num_hits = 0;
    std::atomic<std::uint64_t> num_misses = 0;  // that were decoded here
    std::atomic<std::uint64_t> num_read_bytes = 0;
    RequestTimes times;

  private:
    std::shared_ptr<BlockSource> source();
    std::shared_ptr<const FileLayout> find_file(std::uint64_t node);
    bool append_blocks(const StreamRead& read, ReadPieces& out);
    bool append_zeros(std::uint64_t size, ReadPieces& out);

    const std::uint64_t num_blocks_;
    const std::uint64_t block_size_;
    std::shared_mutex mutex_;  // of what follows
    std::shared_ptr<BlockSource> source_;
    std::unordered_map<std::uint64_t, std::shared_ptr<const FileLayout>> files_;
};

}  // namespace gompfs

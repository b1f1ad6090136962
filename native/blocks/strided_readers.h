// Recognises readers that read at a constant distance (for example every tenth megabyte), and
// predicts what they will read next.
//
// Three reads of a file at the same distance make a strided reader, in either direction. The kernel
// rounds reads to pages, so two distances count as equal if they differ by at most a page. A reader
// that leaves out less than a block is not strided: SequentialReaders handles it. Up to 16 readers
// are remembered.
#pragma once

#include <cstdint>
#include <vector>

namespace gompfs {

// A read of the stream on behalf of a file.
struct StreamRead {
    std::uint64_t node;
    std::uint64_t stream_offset;
    std::uint64_t size;
};

// Not safe for several threads at once; ReadAhead locks.
class StridedReaders {
  public:
    // `capacity` is the size of the cache in blocks.
    StridedReaders(std::uint64_t num_blocks, std::uint64_t block_size, std::uint64_t capacity);

    // Sets the size of the cache in blocks.
    void set_capacity(std::uint64_t capacity);

    // Reports a read. max_ahead is the number of blocks that are worth decoding at once. Returns
    // whether the read continues a stride. Appends the blocks to decode ahead to `wanted` when it
    // is time for more.
    bool note(const StreamRead& read, std::uint64_t max_ahead, std::vector<std::uint64_t>& wanted);

  private:
    struct Reader {
        std::uint64_t node;
        std::int64_t first;      // stream_offset of its first read
        std::int64_t last;       // stream_offset of its latest read
        std::int64_t num_steps;  // number of steps between these two
        std::int64_t ahead;      // number of reads that may be decoded ahead
        std::int64_t requested;  // number of reads after the last one whose blocks were requested

        bool is_strided() const { return num_steps > 1; }
        // The predicted stream offset of the read so many steps after the last one.
        std::int64_t after(std::int64_t steps) const {
            return num_steps ? last + (last - first) * steps / num_steps : last;
        }
    };

    Reader take(const StreamRead& read);
    void keep(const Reader& reader);
    void want(Reader& reader, std::uint64_t size, std::uint64_t max_ahead,
              std::vector<std::uint64_t>& wanted) const;

    const std::uint64_t num_blocks_;
    const std::uint64_t block_size_;
    std::uint64_t fair_;           // the share of one reader in the cache, in blocks
    std::vector<Reader> readers_;  // the latest last
};

}  // namespace gompfs

// Recognises readers who leave something out each time, by where they read, and says what they will
// come to.
#pragma once

#include <cstdint>
#include <vector>

namespace gompfs {

// A read of the stream, in the name of a file.
struct StreamRead {
    std::uint64_t node;
    std::uint64_t stream_offset;
    std::uint64_t size;
};

// Three reads of a file at the same distance make a reader, in either direction. The kernel rounds
// them to pages, so distances are the same within a page. Who leaves out less than a block is no
// strided reader.
class StridedReaders {
  public:
    // Of a cache of so many blocks.
    StridedReaders(std::uint64_t num_blocks, std::uint64_t block_size, std::uint64_t capacity);

    // The cache has room for so many blocks from now on.
    void set_capacity(std::uint64_t capacity);

    // Takes note of a read; at most max_ahead blocks are worth decoding at once. Whether it goes on
    // in a stride; then the blocks to decode ahead are appended to wanted, once it is time for
    // more.
    bool note(const StreamRead& read, std::uint64_t max_ahead, std::vector<std::uint64_t>& wanted);

  private:
    struct Reader {
        std::uint64_t node;
        std::int64_t first;      // stream_offset of its first read
        std::int64_t last;       // and of the latest
        std::int64_t num_steps;  // between those
        std::int64_t ahead;      // how many reads it may be ahead of
        std::int64_t requested;  // of how many after the last one the blocks were asked for

        bool is_strided() const { return num_steps > 1; }
        // Where it reads so many steps after the last one.
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
    std::uint64_t fair_;           // how many blocks of the cache are for one reader
    std::vector<Reader> readers_;  // the latest last
};

}  // namespace gompfs

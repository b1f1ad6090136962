// Recognises sequential readers by the blocks that they read, and says what to decode ahead of
// them.
//
// The stream holds files in directory order, so a program that reads many small files in order
// looks sequential here too. Readers may also go backwards. The kernel sends several requests of
// one reader at once, so they arrive slightly out of order: a reader remembers up to 8 gaps that it
// skipped and is expected to fill. Up to 16 readers are remembered.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

namespace gompfs {

struct BlockRange {
    std::uint64_t first;
    std::uint64_t end;
};

// Not safe for several threads at once; ReadAhead locks.
class SequentialReaders {
  public:
    SequentialReaders(std::uint64_t num_blocks, std::uint64_t capacity)
        : num_blocks_(num_blocks), capacity_(capacity) {}

    // Sets the size of the cache in blocks.
    void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }

    // Reports a read of blocks. max_ahead is the number of blocks that are worth decoding at once.
    // Returns the number of blocks that may be decoded ahead for this reader, negative for a
    // backward reader, 0 if no pattern was recognised. Appends the blocks to decode now to
    // `wanted`.
    std::int64_t note(const BlockRange& range, std::uint64_t max_ahead,
                      std::vector<std::uint64_t>& wanted);

  private:
    // `last` is the range read last. `requested` is how far blocks were requested for this reader:
    // the end of the requested range, or its first block for a backward reader.
    struct Reader {
        BlockRange last;
        std::uint64_t time;       // of its last read, see time_
        std::uint64_t num_steps;  // how often it went on
        bool backwards;
        std::uint64_t ahead;
        std::uint64_t requested;
        std::vector<BlockRange> skipped;  // ranges that were left out and may still be read

        bool has_skipped(const BlockRange& range) const;
        bool skips_to(const BlockRange& range) const;
        void read_skipped(const BlockRange& range);
        void go_on(const BlockRange& range);
    };

    Reader take(const BlockRange& range);
    template <typename Predicate>
    std::optional<Reader> take_if(Predicate&& predicate);
    void want(Reader& reader, std::vector<std::uint64_t>& wanted) const;
    std::uint64_t share() const;

    const std::uint64_t num_blocks_;
    std::uint64_t capacity_;     // of the cache, in blocks
    std::uint64_t time_ = 0;     // counts reads
    std::list<Reader> readers_;  // the latest last
};

}  // namespace gompfs

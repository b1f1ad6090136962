// Recognises sequential readers by what they ask for, and says what to decode ahead of them.
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

// Blocks follow each other in the stream as files do in their directories, so a reader of many
// small files in order looks sequential here too. Others go backwards. The kernel has several
// requests of a reader answered at once, so that they come a little out of order.
class SequentialReaders {
  public:
    SequentialReaders(std::uint64_t num_blocks, std::uint64_t capacity)
        : num_blocks_(num_blocks), capacity_(capacity) {}

    // The cache has room for so many blocks from now on.
    void set_capacity(std::uint64_t capacity) { capacity_ = capacity; }

    // Takes note of somebody who reads blocks; at most max_ahead blocks are worth decoding at once.
    // Returns how many this reader may decode ahead, below 0 where it goes backwards. What should
    // be decoded now is appended to wanted.
    std::int64_t note(const BlockRange& range, std::uint64_t max_ahead,
                      std::vector<std::uint64_t>& wanted);

  private:
    // What it read last, and how far blocks were asked for in its name: the end of those, or the
    // first one where it goes backwards.
    struct Reader {
        BlockRange last;
        bool backwards;
        std::uint64_t ahead;
        std::uint64_t requested;
        std::vector<BlockRange> skipped;  // what is to come yet, though later blocks were read

        bool has_skipped(const BlockRange& range) const;
        bool skips_to(const BlockRange& range) const;
        void read_skipped(const BlockRange& range);
        void go_on(const BlockRange& range);
    };

    Reader take(const BlockRange& range);
    template <typename Predicate>
    std::optional<Reader> take_if(Predicate&& predicate);
    void want(Reader& reader, std::vector<std::uint64_t>& wanted) const;

    const std::uint64_t num_blocks_;
    std::uint64_t capacity_;     // of the cache, in blocks
    std::list<Reader> readers_;  // the latest last
};

}  // namespace gompfs

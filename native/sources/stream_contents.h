// The contents of a segment's stream, in which bytes that several contents share are stored once.
//
// Contents are cut into chunks where the bytes themselves say so: a program that was built again,
// or a database of which one page has changed, then has most chunks of its last version, wherever
// they lie in it. A chunk whose bytes are in the stream is not stored again. So a content is a list
// of runs of the stream. Neighbouring chunks make one run.
//
// Each run is an extent in the index, and reading it decodes a block. So a chunk is shared only if
// it is long enough, or if it continues a run. One that the content had just before is stored
// again: the matches of its block reach it, and data with a short period would have thousands of
// runs.
//
// Which bytes are stored depends on the contents and their order only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/spilled_items.h"

namespace gompfs {

class StreamContents {
  public:
    using Bytes = std::span<const std::uint8_t>;
    // Bytes of the stream, counted from the beginning of the segment.
    struct Run {
        std::uint64_t position, size;
        bool operator==(const Run&) const = default;
    };
    // Bytes of a content that must be appended to the stream.
    struct Range {
        std::size_t begin, size;
    };
    using Ranges = std::vector<Range>;

    static constexpr std::size_t kMaxChunks = std::size_t{1} << 21;  // that are remembered

    // `directory` is for temporary files.
    explicit StreamContents(const std::string& directory, std::size_t max_chunks = kMaxChunks)
        : max_chunks_(max_chunks), runs_(directory), ends_(directory) {}

    // Adds whole contents. Returns what is new of each.
    std::vector<Ranges> add(std::span<const Bytes> contents, unsigned num_threads);
    // Adds a piece of a content that `end` ends. Returns what is new.
    Ranges add_piece(Bytes piece, unsigned num_threads);
    // Returns the number of the content. They are numbered from 0.
    std::uint64_t end();

    std::uint64_t num_contents() const { return ends_.size(); }
    std::vector<Run> runs(std::uint64_t number) const;
    // The number of bytes in the stream.
    std::uint64_t size() const { return size_; }

  private:
    struct Chunk {
        // Twenty bytes of a SHA-256: nobody can make two chunks that have the same.
        std::array<std::uint8_t, 20> hash;
        std::uint32_t size;
        std::uint64_t position = 0;  // in the stream
        std::uint64_t placed = 0;    // where it was last, as placed_ counts
    };
    using Chunks = std::vector<Chunk>;

    static Chunks cut(Bytes bytes);
    std::size_t slot_of(const Chunk& chunk) const;
    Chunk* find(const Chunk& chunk);
    void remember(const Chunk& chunk);
    bool place(const Chunk& chunk);
    bool is_worth_a_run(const Chunk& known) const;
    bool continues(std::uint64_t position) const;
    void append_run(std::uint64_t position, std::uint64_t size);

    const std::size_t max_chunks_;
    Chunks chunks_;  // that are remembered
    // A hash table of indexes of chunks_, plus one.
    std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1 << 10);
    std::vector<Run> open_runs_;        // of the open content
    SpilledItems<Run> runs_;            // of all others
    SpilledItems<std::uint64_t> ends_;  // for each content, the end of its runs
    std::uint64_t size_ = 0;
    std::uint64_t placed_ = 0;         // bytes of all contents so far
    std::uint64_t content_start_ = 0;  // as placed_ counts, of the open content
};

}  // namespace gompfs

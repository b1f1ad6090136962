// The bytes of a file that is searched, in one piece of memory.
//
// A file in a single block is searched where the cache has it. The blocks of other files are put
// together. If there are many of them, they are decoded to where they belong, except for those at
// the ends of the file, which other files may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "blocks/block_reader.h"
#include "common/large_vector.h"

namespace gompfs::search {

// Keeps its memory from one file to the next.
class FileText {
  public:
    // Reads a file. Throws what BlockReader::read_pieces throws.
    ReadFailure read(BlockReader& reader, std::uint64_t ino, const LayoutView& layout);

    // Reads a file whose blocks no other file needs, on several threads.
    ReadFailure read_alone(BlockReader& reader, std::uint64_t ino, const LayoutView& layout,
                           unsigned num_threads);

    // The bytes of the file that was read; valid until the next one is read.
    std::string_view bytes() const { return bytes_; }

  private:
    void set_size(std::size_t size);
    void join(const ReadPieces& read, std::size_t begin);
    ReadFailure copy(BlockReader& reader, std::uint64_t ino, std::size_t begin, std::size_t end);
    ReadFailure read_many_blocks(BlockReader& reader, std::uint64_t ino, const LayoutView& layout);

    ReadPieces read_;
    LargeVector<char> buffer_;
    std::string_view bytes_;
};

}  // namespace gompfs::search

// The extents of files in the parts of a segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gompfs {

// An extent of a file in a part of text.
struct TextExtent {
    std::uint32_t part;
    std::uint64_t offset, size;  // in the text of the part
    std::uint64_t ino;
    bool continues;  // whether the file begins in an earlier part
};

// Throws std::invalid_argument: an extent is not a piece of its part.
[[noreturn]] void fail_extent();

// Parts of text of a segment, in order: where each begins in the solid stream, and its size; and
// where the segment is there.
struct PartRanges {
    std::vector<std::uint64_t> begins, sizes;
    std::uint64_t segment_begin, segment_end;
};

// Finds the extents that begin in parts of text, in the order of part, offset and inode number.
// Files with extents in other segments are left out: they are composed, and the words of parts are
// not theirs. `rows` has four numbers for each extent, as the index has them: inode number, file
// offset, offset in the solid stream, and size. The extents of a file follow each other. The
// numbers need not be valid.
std::vector<TextExtent> find_text_extents(std::span<const std::uint64_t> rows,
                                          const PartRanges& parts);

// The extents of each part.
std::vector<std::span<const TextExtent>> split_by_part(std::span<const TextExtent> extents,
                                                       std::size_t num_parts);

}  // namespace gompfs

// The positions of files in the stream: extents, which the index stores and readers ask for.
//
// A layout comes from rows of the index (read_layouts checks them, and append_extent), and is kept
// in a LayoutTable. A read turns a range of a file into pieces of the
// stream and holes (for_each_piece).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

// A layout whose extents are elsewhere.
struct LayoutView {
    std::uint64_t size;
    std::span<const FileExtent> extents;

    FileLayout copy() const { return {size, {extents.begin(), extents.end()}}; }
};

using FileLayouts = std::vector<std::pair<std::uint64_t, FileLayout>>;  // by inode number

// Whether some bytes of the file are in no extent.
bool has_holes(const LayoutView& layout);

// The columns ino, size, file_offset, stream_offset and extent size: text with commas between the
// fields. One row per extent, sorted by file and file_offset; a file without extents has one row,
// whose last three fields are -1.
using LayoutColumns = std::array<std::string_view, 5>;

// Returns the layouts of the files with inode numbers below `end`. Throws std::invalid_argument if
// the rows are inconsistent, or if extents overlap.
FileLayouts read_layouts(const LayoutColumns& columns, std::uint64_t end);

// Appends an extent to those of a file, of which the first has index `first`. Throws
// std::invalid_argument if it is empty, or overlaps the one before.
void append_extent(std::vector<FileExtent>& extents, std::size_t first, const FileExtent& extent);

// The layouts of the files that were read, by inode number. Safe for any number of threads.
class LayoutTable {
  public:
    // Reads the layout of a file from the index, and those of files after it unless `alone`. Throws
    // std::invalid_argument if the index is damaged there.
    using Find = std::function<FileLayouts(std::uint64_t ino, bool alone)>;

    // Sets the function that `find` calls for unknown files. Must be called before other threads
    // use the table.
    void set_find(Find find) { find_ = std::move(find); }

    // The layout of an archive's file never changes.
    void add(FileLayouts layouts);

    bool contains(std::uint64_t ino) { return look_up(ino) != nullptr; }

    // Returns the layout of a file, after asking the function of set_find if necessary, or nullptr
    // if the archive has no such file. Throws what that function throws for this file alone.
    std::shared_ptr<const FileLayout> find(std::uint64_t ino) {
        if (std::shared_ptr<const FileLayout> file = look_up(ino)) {
            return file;
        }
        return find_ ? find_in_index(ino) : nullptr;
    }

    // Returns the layout of a file if it is known.
    std::shared_ptr<const FileLayout> look_up(std::uint64_t ino) {
        const std::shared_lock lock(mutex_);
        const auto found = files_.find(ino);
        return found == files_.end() ? nullptr : found->second;
    }

  private:
    std::shared_ptr<const FileLayout> find_in_index(std::uint64_t ino);

    Find find_;
    std::shared_mutex mutex_;  // protects files_
    std::unordered_map<std::uint64_t, std::shared_ptr<const FileLayout>> files_;
};

// Cuts up to `size` bytes of a file from file_offset on into pieces, in order: calls
// data(stream_offset, size) for bytes of the stream and hole(size) for bytes that are zeros. Stops
// and returns false as soon as a call returns false.
template <typename Data, typename Hole>
bool for_each_piece(const FileLayout& file, std::uint64_t file_offset, std::uint64_t size,
                    const Data& data, const Hole& hole) {
    const std::uint64_t end =
        file_offset + std::min(size, file.size - std::min(file_offset, file.size));
    std::uint64_t position = file_offset;
    auto extent = std::partition_point(
        file.extents.begin(), file.extents.end(), [&](const FileExtent& candidate) {
            return candidate.file_offset + candidate.size <= file_offset;
        });
    for (; position < end; ++extent) {
        const bool is_last = extent == file.extents.end();
        const std::uint64_t begin = is_last ? end : std::min(extent->file_offset, end);
        if (begin > position && !hole(begin - position)) {
            return false;
        }
        position = std::max(position, begin);
        if (is_last || position == end) {
            break;
        }
        const std::uint64_t count = std::min(extent->file_offset + extent->size, end) - position;
        if (!data(extent->stream_offset + (position - extent->file_offset), count)) {
            return false;
        }
        position += count;
    }
    return true;
}

}  // namespace gompfs

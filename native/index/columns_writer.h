// Writes the columns of an index from its rows; see index_rows.h, which decodes them.
//
// The rows of each table are added in the order of their keys, inodes before extents. All functions
// throw std::invalid_argument if the columns cannot store a value. The columns of millions of rows
// are not in memory twice: they are moved to the result one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "index/columns.h"
#include "index/index_rows.h"

namespace gompfs {

// The columns of an index, and where in them each column ends.
struct StoredColumns {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> ends;
};

// Writes a column of numbers with signs, each as the difference to the one before.
class DifferenceWriter {
  public:
    void add(std::int64_t value) {
        column_.add_signed(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - last_));
        last_ = static_cast<std::uint64_t>(value);
    }
    std::uint64_t size() const { return column_.size(); }
    void move_to(std::vector<std::uint8_t>& columns) { column_.move_to(columns); }

  private:
    NumberColumnWriter column_;
    std::uint64_t last_ = 0;
};

// Writes a column of numbers that ascend by at least `least`.
class AscendingWriter {
  public:
    explicit AscendingWriter(std::uint64_t least) : least_(least) {}

    void add(std::uint64_t value) {
        if (value < last_ + least_) {
            fail_index("a key is below 1");  // the rows are in order
        }
        column_.add(value - last_ - least_);
        last_ = value;
    }
    std::uint64_t size() const { return column_.size(); }
    void move_to(std::vector<std::uint8_t>& columns) { column_.move_to(columns); }

  private:
    NumberColumnWriter column_;
    std::uint64_t least_, last_ = 0;
};

// The sizes of inodes, which are added and asked for in ascending order of their numbers.
class FileSizes {
  public:
    void add(std::uint64_t ino, std::uint64_t size);
    // Returns the size of an inode, or 0 if it was not added.
    std::uint64_t of(std::uint64_t ino);

  private:
    std::uint64_t next_number();

    GrowingBytes rows_;  // for each, how far its number is from the one before, and its size
    GrowingBytes::Cursor next_;
    std::uint64_t last_added_ = 0;
    FileRow file_{};  // the last one read
};

class ColumnsWriter {
  public:
    void add(const MetaRow& row);
    void add(const InodeRow& row);
    void add(const EntryRow& row);
    void add(const ExtentRow& row);
    void add(const XattrRow& row);
    void add(const SegmentRow& row);
    void add(const SectionRow& row);
    void add_binary_file(std::uint64_t ino);
    void add(const GenerationRow& row);
    // Of changes only.
    void remove_inode(std::uint64_t ino);
    void remove_name(const NameRow& row);

    // Returns the columns of a whole index, or of changes. Nothing is left in the writer.
    StoredColumns finish(IndexKind kind);

  private:
    // Calls `take` for each group: with its number of rows, and its columns.
    template <typename Take>
    void for_each_group(IndexKind kind, const Take& take);

    struct {
        std::uint64_t num_rows = 0;
        ByteColumnWriter keys, values;
    } meta_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter inos{1};
        DifferenceWriter modes, uids, gids;
        NumberColumnWriter sizes;
        DifferenceWriter mtimes;
        NumberColumnWriter rdevs;
        ByteColumnWriter targets;
    } inode_;
    struct {
        std::uint64_t num_rows = 0, last_ino = 0;
        AscendingWriter parents{0};
        ByteColumnWriter names;
        NumberColumnWriter inos;
    } dirent_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter inos{0};
        NumberColumnWriter file_offsets, stream_offsets, sizes;
        ExtentRow last{};
        FileSizes files;  // of all inodes
    } extent_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter inos{0};
        ByteColumnWriter names, values;
        NumberColumnWriter value_sizes;
    } xattr_;
    struct {
        std::uint64_t num_rows = 0;
        NumberColumnWriter archive_offsets, nums_blocks, nums_parts, heads_offsets;
    } segment_;
    struct {
        std::uint64_t num_rows = 0;
        NumberColumnWriter kinds, sizes, head_sizes;
    } part_;
    struct {
        std::uint64_t num_rows = 0;
        DifferenceWriter compressed_sizes;
        NumberColumnWriter codecs;
    } block_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter segments{0};
        ByteColumnWriter kinds;
        NumberColumnWriter uncompressed_sizes, archive_offsets, nums_blocks;
    } section_;
    struct {
        std::uint64_t num_rows = 0;
        DifferenceWriter compressed_sizes;
    } section_block_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter inos{1};
    } binary_file_, removed_inode_;
    struct {
        std::uint64_t num_rows = 0;
        DifferenceWriter times;
        NumberColumnWriter nums_added, nums_removed;
        ByteColumnWriter commands, comments;
    } generation_;
    struct {
        std::uint64_t num_rows = 0;
        AscendingWriter parents{0};
        ByteColumnWriter names;
    } removed_name_;
};

}  // namespace gompfs

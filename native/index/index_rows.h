// The rows of an index, decoded from its columns in the order of their keys.
//
// Most columns store how a value differs from the value that the rows before let one expect; see
// docs/format.md, section 3. The columns are untrusted input: the classes check that the columns of
// a table have as many values as it has rows, that keys ascend, and that numbers fit into 63 bits.
// Whether a value is possible for a file (a mode, a name) is checked by those who use the row. All
// functions throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "index/columns.h"

namespace gompfs {

inline constexpr std::int64_t kFileTypeBits = 0170000, kDirectoryType = 0040000,
                              kRegularType = 0100000, kSymlinkType = 0120000;  // of a mode

inline constexpr std::uint64_t kRowSize = 64;  // of a row without the bytes of its columns

// Whether an index has all rows, or those that differ from the index of the generation before.
enum class IndexKind : std::uint8_t { whole, changes };

// The bytes of all columns of an index, by table.
struct IndexColumns {
    explicit IndexColumns(Bytes columns, IndexKind kind = IndexKind::whole);

    // Returns the bytes of all columns, and kRowSize for each row; the largest number if that is
    // more. What a reader makes of the rows takes about that much memory.
    std::uint64_t unpacked_size() const { return unpacked_size_; }

    struct {
        std::uint64_t num_rows;
        Bytes keys, values;
    } meta;
    struct {
        std::uint64_t num_rows;
        Bytes inos, modes, uids, gids, sizes, mtimes, rdevs, targets;
    } inode;
    struct {
        std::uint64_t num_rows;
        Bytes parents, names, inos;
    } dirent;
    struct {
        std::uint64_t num_rows;
        Bytes inos, file_offsets, stream_offsets, sizes;
    } extent;
    struct {
        std::uint64_t num_rows;
        Bytes inos, names, value_sizes, values;
    } xattr;
    struct {
        std::uint64_t num_rows;
        Bytes archive_offsets, nums_blocks, nums_parts, heads_offsets;
    } segment;
    struct {
        std::uint64_t num_rows;
        Bytes kinds, sizes, head_sizes;
    } part;
    struct {
        std::uint64_t num_rows;
        Bytes compressed_sizes, codecs;
    } block;
    struct {
        std::uint64_t num_rows;
        Bytes segments, kinds, uncompressed_sizes, archive_offsets, nums_blocks;
    } section;
    struct {
        std::uint64_t num_rows;
        Bytes compressed_sizes;
    } section_block;
    struct {
        std::uint64_t num_rows;
        Bytes inos;
    } binary_file;
    struct {
        std::uint64_t num_rows;
        Bytes times, nums_added, nums_removed, commands, comments;
    } generation;
    struct {
        std::uint64_t num_rows;
        Bytes inos;
    } removed_inode;  // of changes
    struct {
        std::uint64_t num_rows;
        Bytes parents, names;
    } removed_name;  // of changes

  private:
    std::uint64_t unpacked_size_;
};

// Numbers that do not descend, each stored as the difference to the one before.
class AscendingNumbers {
  public:
    // The first number and each difference is at least `least`.
    AscendingNumbers(Bytes column, std::uint64_t num_rows, std::uint64_t least)
        : column_(column, num_rows), least_(least) {}

    std::uint64_t next() {
        const std::uint64_t difference = column_.next();
        if (difference > kMaxIndexNumber || difference + least_ > kMaxIndexNumber - last_) {
            fail_index("a key of a table is too large");
        }
        return last_ += difference + least_;
    }

  private:
    NumberColumn column_;
    std::uint64_t least_, last_ = 0;
};

struct InodeRow {
    std::uint64_t ino, size, rdev;
    std::int64_t mode, uid, gid, mtime_ns;
    std::string_view target;  // of a symbolic link
};

class InodeRows {
  public:
    explicit InodeRows(const IndexColumns& columns);
    bool next(InodeRow& row);

  private:
    std::uint64_t left_;
    AscendingNumbers inos_;
    NumberColumn modes_, uids_, gids_, sizes_, mtimes_, rdevs_;
    std::int64_t mode_ = 0, uid_ = 0, gid_ = 0, mtime_ns_ = 0;
    std::string_view targets_;  // of the rows that are left, each with its NUL
};

struct EntryRow {
    std::uint64_t parent, ino;
    std::string_view name;
};

class EntryRows {
  public:
    explicit EntryRows(const IndexColumns& columns);
    bool next(EntryRow& row);

  private:
    std::uint64_t left_;
    AscendingNumbers parents_;
    StringColumn names_;
    NumberColumn inos_;
    EntryRow last_{};
    bool has_last_ = false;
};

struct FileRow {
    std::uint64_t ino, size;
};

struct ExtentRow {
    std::uint64_t ino, file_offset, stream_offset, size;
};

// Returns the size that an extent has if it reaches to the end of its file.
inline std::uint64_t expected_size(std::uint64_t file_size, std::uint64_t file_offset) {
    return file_size > file_offset ? file_size - file_offset : 0;
}

// Returns where an extent begins if it continues the one before, whose inode may be another one.
inline std::uint64_t expected_file_offset(const ExtentRow& last, std::uint64_t ino) {
    return last.ino == ino ? last.file_offset + last.size : 0;
}

class ExtentRows {
  public:
    explicit ExtentRows(const IndexColumns& columns);
    bool next(ExtentRow& row);

  private:
    std::uint64_t file_size(std::uint64_t ino);

    std::uint64_t left_;
    AscendingNumbers inos_;
    NumberColumn file_offsets_, stream_offsets_, sizes_;
    ExtentRow last_{};
    bool has_last_ = false;
    std::uint64_t inodes_left_;
    AscendingNumbers inode_inos_;
    NumberColumn inode_sizes_;
    FileRow inode_{};
};

struct XattrRow {
    std::uint64_t ino;
    std::string_view name;
    Bytes value;
};

class XattrRows {
  public:
    explicit XattrRows(const IndexColumns& columns);
    bool next(XattrRow& row);

  private:
    std::uint64_t left_;
    AscendingNumbers inos_;
    StringColumn names_;
    NumberColumn value_sizes_;
    Bytes values_;
    XattrRow last_{};
    bool has_last_ = false;
};

struct MetaRow {
    std::string_view key, value;
};

class MetaRows {
  public:
    explicit MetaRows(const IndexColumns& columns);
    bool next(MetaRow& row);

  private:
    std::uint64_t left_;
    StringColumn keys_, values_;
    std::string_view last_;
    bool has_last_ = false;
};

// A row of the table segment. Its packed columns are little-endian.
struct SegmentRow {
    std::uint64_t first_block, archive_offset, heads_offset;
    std::vector<std::uint32_t> compressed_sizes, head_sizes;
    std::vector<std::uint8_t> codecs, part_kinds;
    std::vector<std::uint64_t> part_sizes;
};

// Rows are numbered from 0.
class SegmentRows {
  public:
    explicit SegmentRows(const IndexColumns& columns);
    bool next(SegmentRow& row);

  private:
    std::uint64_t left_, parts_left_, blocks_left_;
    std::uint64_t first_block_ = 0;
    NumberColumn archive_offsets_, nums_blocks_, nums_parts_, heads_offsets_;
    NumberColumn part_kinds_, part_sizes_, head_sizes_;
    NumberColumn compressed_sizes_, codecs_;
    std::int64_t compressed_size_ = 0;
};

struct SectionRow {
    std::uint64_t segment, uncompressed_size, archive_offset;
    std::string_view kind;
    std::vector<std::uint32_t> compressed_sizes;
};

class SectionRows {
  public:
    explicit SectionRows(const IndexColumns& columns);
    bool next(SectionRow& row);

  private:
    std::uint64_t left_, blocks_left_;
    AscendingNumbers segments_;
    StringColumn kinds_;
    NumberColumn uncompressed_sizes_, archive_offsets_, nums_blocks_, compressed_sizes_;
    std::int64_t compressed_size_ = 0;
    std::uint64_t last_segment_ = 0;
    std::string_view last_kind_;
    bool has_last_ = false;
};

class BinaryFileRows {
  public:
    explicit BinaryFileRows(const IndexColumns& columns);
    bool next(std::uint64_t& ino);

  private:
    std::uint64_t left_;
    AscendingNumbers inos_;
};

// What one generation did. Rows are numbered from 1.
struct GenerationRow {
    std::int64_t time;  // in seconds since 1970
    std::uint64_t num_added, num_removed;
    std::string_view command, comment;
};

class GenerationRows {
  public:
    explicit GenerationRows(const IndexColumns& columns);
    bool next(GenerationRow& row);

  private:
    std::uint64_t left_;
    NumberColumn times_, nums_added_, nums_removed_;
    StringColumn commands_, comments_;
    std::int64_t time_ = 0;
};

class RemovedInodeRows {
  public:
    explicit RemovedInodeRows(const IndexColumns& changes);
    bool next(std::uint64_t& ino);

  private:
    std::uint64_t left_;
    AscendingNumbers inos_;
};

struct NameRow {
    std::uint64_t parent;
    std::string_view name;
};

class RemovedNameRows {
  public:
    explicit RemovedNameRows(const IndexColumns& changes);
    bool next(NameRow& row);

  private:
    std::uint64_t left_;
    AscendingNumbers parents_;
    StringColumn names_;
    NameRow last_{};
    bool has_last_ = false;
};

}  // namespace gompfs

// Decodes the rows of an index; see index_rows.h.
#include "index/index_rows.h"

#include <limits>

#include "common/utf8.h"

namespace gompfs {
namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMax8 = std::numeric_limits<std::uint8_t>::max();

// Adds a difference to a number of 64 bits. Sums wrap, so every number can follow every other one.
std::int64_t plus(std::int64_t number, std::int64_t difference) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) +
                                     static_cast<std::uint64_t>(difference));
}

// Adds a difference to an expected number. Throws if the sum is negative or has more than 63 bits.
std::uint64_t near(std::uint64_t expected, std::int64_t difference, const char* what) {
    const std::uint64_t sum = expected + static_cast<std::uint64_t>(difference);
    if (sum > kMaxIndexNumber) {
        fail_index(std::string(what) + " is negative or too large");
    }
    return sum;
}

void check_text(std::string_view text) {
    if (!is_valid_utf8(text)) {
        fail_index("a text is not UTF-8");
    }
}

// Reads the compressed sizes of blocks, each stored as the difference to the one before.
void read_compressed_sizes(NumberColumn& column, std::uint64_t count, std::int64_t& last,
                           std::vector<std::uint32_t>& sizes) {
    sizes.clear();
    for (; count != 0; --count) {
        last = plus(last, column.next_signed());
        if (last < 0 || last > static_cast<std::int64_t>(kMax32)) {
            fail_index("the size of a block is negative or too large");
        }
        sizes.push_back(static_cast<std::uint32_t>(last));
    }
}

std::uint64_t take(std::uint64_t& left, std::uint64_t count, const char* what) {
    if (count > left) {
        fail_index(std::string("there are fewer ") + what + " than its rows say");
    }
    left -= count;
    return count;
}

void check_all_used(std::uint64_t left, const char* what) {
    if (left != 0) {
        fail_index(std::string("there are more ") + what + " than its rows say");
    }
}

}  // namespace

IndexColumns::IndexColumns(Bytes columns, IndexKind kind) : unpacked_size_(columns.size()) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    ColumnCutter cutter(columns);
    const auto read = [&](auto& table, auto&... column) {
        table.num_rows = cutter.next_num_rows();
        const bool is_too_much = table.num_rows > (kMost - unpacked_size_) / kRowSize;
        unpacked_size_ = is_too_much ? kMost : unpacked_size_ + kRowSize * table.num_rows;
        ((column = cutter.next_column()), ...);
    };
    read(meta, meta.keys, meta.values);
    read(inode, inode.inos, inode.modes, inode.uids, inode.gids, inode.sizes, inode.mtimes,
         inode.rdevs, inode.targets);
    read(dirent, dirent.parents, dirent.names, dirent.inos);
    read(extent, extent.inos, extent.file_offsets, extent.stream_offsets, extent.sizes);
    read(xattr, xattr.inos, xattr.names, xattr.value_sizes, xattr.values);
    read(segment, segment.archive_offsets, segment.nums_blocks, segment.nums_parts,
         segment.heads_offsets);
    read(part, part.kinds, part.sizes, part.head_sizes);
    read(block, block.compressed_sizes, block.codecs);
    read(section, section.segments, section.kinds, section.uncompressed_sizes,
         section.archive_offsets, section.nums_blocks);
    read(section_block, section_block.compressed_sizes);
    read(binary_file, binary_file.inos);
    read(generation, generation.times, generation.nums_added, generation.nums_removed,
         generation.commands, generation.comments);
    removed_inode = {};
    removed_name = {};
    if (kind == IndexKind::changes) {
        read(removed_inode, removed_inode.inos);
        read(removed_name, removed_name.parents, removed_name.names);
    }
    cutter.finish();
}

InodeRows::InodeRows(const IndexColumns& columns)
    : left_(columns.inode.num_rows),
      inos_(columns.inode.inos, left_, 1),
      modes_(columns.inode.modes, left_),
      uids_(columns.inode.uids, left_),
      gids_(columns.inode.gids, left_),
      sizes_(columns.inode.sizes, left_),
      mtimes_(columns.inode.mtimes, left_),
      rdevs_(columns.inode.rdevs, left_),
      targets_(reinterpret_cast<const char*>(columns.inode.targets.data()),
               columns.inode.targets.size()) {}

bool InodeRows::next(InodeRow& row) {
    if (left_ == 0) {
        if (!targets_.empty()) {
            fail_index("there are more targets than symbolic links");
        }
        return false;
    }
    --left_;
    row.ino = inos_.next();
    row.mode = mode_ = plus(mode_, modes_.next_signed());
    row.uid = uid_ = plus(uid_, uids_.next_signed());
    row.gid = gid_ = plus(gid_, gids_.next_signed());
    row.size = sizes_.next_up_to(kMaxIndexNumber, "the size of a file");
    row.mtime_ns = mtime_ns_ = plus(mtime_ns_, mtimes_.next_signed());
    row.rdev = rdevs_.next_up_to(kMaxIndexNumber, "the number of a device");
    row.target = {};
    if ((row.mode & kFileTypeBits) == kSymlinkType) {
        const std::size_t size = targets_.find('\0');
        if (size == targets_.npos) {
            fail_index("there are fewer targets than symbolic links");
        }
        row.target = targets_.substr(0, size);
        targets_.remove_prefix(size + 1);
    }
    return true;
}

EntryRows::EntryRows(const IndexColumns& columns)
    : left_(columns.dirent.num_rows),
      parents_(columns.dirent.parents, left_, 0),
      names_(columns.dirent.names, left_),
      inos_(columns.dirent.inos, left_) {}

bool EntryRows::next(EntryRow& row) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    row.parent = parents_.next();
    row.name = names_.next();
    row.ino = near(last_.ino + 1, inos_.next_signed(), "the inode number of an entry");
    if (has_last_ && row.parent == last_.parent && row.name <= last_.name) {
        fail_index("the names of a directory are not in order, or a name occurs twice");
    }
    last_ = row;
    has_last_ = true;
    return true;
}

ExtentRows::ExtentRows(const IndexColumns& columns)
    : left_(columns.extent.num_rows),
      inos_(columns.extent.inos, left_, 0),
      file_offsets_(columns.extent.file_offsets, left_),
      stream_offsets_(columns.extent.stream_offsets, left_),
      sizes_(columns.extent.sizes, left_),
      inodes_left_(columns.inode.num_rows),
      inode_inos_(columns.inode.inos, inodes_left_, 1),
      inode_sizes_(columns.inode.sizes, inodes_left_) {}

// Returns the size that the table inode states for an inode, or 0 if there is none.
std::uint64_t ExtentRows::file_size(std::uint64_t ino) {
    while (inodes_left_ != 0 && inode_.ino < ino) {
        --inodes_left_;
        inode_ = {inode_inos_.next(), inode_sizes_.next()};
    }
    return inode_.ino == ino ? inode_.size : 0;
}

bool ExtentRows::next(ExtentRow& row) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    row.ino = inos_.next();
    row.file_offset = near(expected_file_offset(last_, row.ino), file_offsets_.next_signed(),
                           "the file offset of an extent");
    row.stream_offset = near(last_.stream_offset + last_.size, stream_offsets_.next_signed(),
                             "the stream offset of an extent");
    row.size = near(expected_size(file_size(row.ino), row.file_offset), sizes_.next_signed(),
                    "the size of an extent");
    if (has_last_ && row.ino == last_.ino && row.file_offset <= last_.file_offset) {
        fail_index("the extents of a file are not in order");
    }
    last_ = row;
    has_last_ = true;
    return true;
}

XattrRows::XattrRows(const IndexColumns& columns)
    : left_(columns.xattr.num_rows),
      inos_(columns.xattr.inos, left_, 0),
      names_(columns.xattr.names, left_),
      value_sizes_(columns.xattr.value_sizes, left_),
      values_(columns.xattr.values) {}

bool XattrRows::next(XattrRow& row) {
    if (left_ == 0) {
        check_all_used(values_.size(), "bytes of extended attributes");
        return false;
    }
    --left_;
    row.ino = inos_.next();
    row.name = names_.next();
    const std::uint64_t size = value_sizes_.next();
    if (size > values_.size()) {
        fail_index("there are fewer bytes of extended attributes than its rows say");
    }
    row.value = values_.first(size);
    values_ = values_.subspan(size);
    if (has_last_ && row.ino == last_.ino && row.name <= last_.name) {
        fail_index("the extended attributes of an inode are not in order, or one occurs twice");
    }
    last_ = row;
    has_last_ = true;
    return true;
}

MetaRows::MetaRows(const IndexColumns& columns)
    : left_(columns.meta.num_rows),
      keys_(columns.meta.keys, left_),
      values_(columns.meta.values, left_) {}

bool MetaRows::next(MetaRow& row) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    row = {keys_.next(), values_.next()};
    check_text(row.key);
    check_text(row.value);
    if (has_last_ && row.key <= last_) {
        fail_index("the keys of meta are not in order, or a key occurs twice");
    }
    last_ = row.key;
    has_last_ = true;
    return true;
}

SegmentRows::SegmentRows(const IndexColumns& columns)
    : left_(columns.segment.num_rows),
      parts_left_(columns.part.num_rows),
      blocks_left_(columns.block.num_rows),
      archive_offsets_(columns.segment.archive_offsets, left_),
      nums_blocks_(columns.segment.nums_blocks, left_),
      nums_parts_(columns.segment.nums_parts, left_),
      heads_offsets_(columns.segment.heads_offsets, left_),
      part_kinds_(columns.part.kinds, parts_left_),
      part_sizes_(columns.part.sizes, parts_left_),
      head_sizes_(columns.part.head_sizes, parts_left_),
      compressed_sizes_(columns.block.compressed_sizes, blocks_left_),
      codecs_(columns.block.codecs, blocks_left_) {}

bool SegmentRows::next(SegmentRow& row) {
    if (left_ == 0) {
        check_all_used(parts_left_, "parts");
        check_all_used(blocks_left_, "blocks");
        return false;
    }
    --left_;
    row.first_block = first_block_;
    row.archive_offset = archive_offsets_.next_up_to(kMaxIndexNumber, "an archive offset");
    row.heads_offset = heads_offsets_.next_up_to(kMaxIndexNumber, "an archive offset");
    const std::uint64_t num_blocks = take(blocks_left_, nums_blocks_.next(), "blocks");
    const std::uint64_t num_parts = take(parts_left_, nums_parts_.next(), "parts");
    first_block_ += num_blocks;
    read_compressed_sizes(compressed_sizes_, num_blocks, compressed_size_, row.compressed_sizes);
    row.codecs.clear();
    for (std::uint64_t block = 0; block < num_blocks; ++block) {
        row.codecs.push_back(static_cast<std::uint8_t>(codecs_.next_up_to(kMax8, "a codec")));
    }
    row.part_kinds.clear();
    row.part_sizes.clear();
    row.head_sizes.clear();
    for (std::uint64_t part = 0; part < num_parts; ++part) {
        row.part_kinds.push_back(
            static_cast<std::uint8_t>(part_kinds_.next_up_to(kMax8, "the kind of a part")));
        row.part_sizes.push_back(part_sizes_.next_up_to(kMaxIndexNumber, "the size of a part"));
        row.head_sizes.push_back(
            static_cast<std::uint32_t>(head_sizes_.next_up_to(kMax32, "the size of a head")));
    }
    return true;
}

SectionRows::SectionRows(const IndexColumns& columns)
    : left_(columns.section.num_rows),
      blocks_left_(columns.section_block.num_rows),
      segments_(columns.section.segments, left_, 0),
      kinds_(columns.section.kinds, left_),
      uncompressed_sizes_(columns.section.uncompressed_sizes, left_),
      archive_offsets_(columns.section.archive_offsets, left_),
      nums_blocks_(columns.section.nums_blocks, left_),
      compressed_sizes_(columns.section_block.compressed_sizes, blocks_left_) {}

bool SectionRows::next(SectionRow& row) {
    if (left_ == 0) {
        check_all_used(blocks_left_, "blocks of sections");
        return false;
    }
    --left_;
    row.segment = segments_.next();
    row.kind = kinds_.next();
    check_text(row.kind);
    row.uncompressed_size =
        uncompressed_sizes_.next_up_to(kMaxIndexNumber, "the size of a section");
    row.archive_offset = archive_offsets_.next_up_to(kMaxIndexNumber, "an archive offset");
    const std::uint64_t count = take(blocks_left_, nums_blocks_.next(), "blocks of sections");
    read_compressed_sizes(compressed_sizes_, count, compressed_size_, row.compressed_sizes);
    if (has_last_ && row.segment == last_segment_ && row.kind <= last_kind_) {
        fail_index("the sections are not in order, or a section occurs twice");
    }
    last_segment_ = row.segment;
    last_kind_ = row.kind;
    has_last_ = true;
    return true;
}

BinaryFileRows::BinaryFileRows(const IndexColumns& columns)
    : left_(columns.binary_file.num_rows), inos_(columns.binary_file.inos, left_, 1) {}

bool BinaryFileRows::next(std::uint64_t& ino) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    ino = inos_.next();
    return true;
}

GenerationRows::GenerationRows(const IndexColumns& columns)
    : left_(columns.generation.num_rows),
      times_(columns.generation.times, left_),
      nums_added_(columns.generation.nums_added, left_),
      nums_removed_(columns.generation.nums_removed, left_),
      commands_(columns.generation.commands, left_),
      comments_(columns.generation.comments, left_) {}

bool GenerationRows::next(GenerationRow& row) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    row.time = time_ = plus(time_, times_.next_signed());
    row.num_added = nums_added_.next_up_to(kMaxIndexNumber, "the number of added entries");
    row.num_removed = nums_removed_.next_up_to(kMaxIndexNumber, "the number of removed entries");
    row.command = commands_.next();
    row.comment = comments_.next();
    check_text(row.command);
    check_text(row.comment);
    return true;
}

RemovedInodeRows::RemovedInodeRows(const IndexColumns& changes)
    : left_(changes.removed_inode.num_rows), inos_(changes.removed_inode.inos, left_, 1) {}

bool RemovedInodeRows::next(std::uint64_t& ino) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    ino = inos_.next();
    return true;
}

RemovedNameRows::RemovedNameRows(const IndexColumns& changes)
    : left_(changes.removed_name.num_rows),
      parents_(changes.removed_name.parents, left_, 0),
      names_(changes.removed_name.names, left_) {}

bool RemovedNameRows::next(NameRow& row) {
    if (left_ == 0) {
        return false;
    }
    --left_;
    row = {parents_.next(), names_.next()};
    if (has_last_ && row.parent == last_.parent && row.name <= last_.name) {
        fail_index("the removed names are not in order, or a name occurs twice");
    }
    last_ = row;
    has_last_ = true;
    return true;
}

}  // namespace gompfs

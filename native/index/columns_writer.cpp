// Writes the columns of an index; see columns_writer.h.
#include "index/columns_writer.h"

namespace gompfs {
namespace {

std::int64_t minus(std::uint64_t number, std::uint64_t other) {
    return static_cast<std::int64_t>(number - other);
}

void append_varint(GrowingBytes& bytes, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
    }
    bytes.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace

void FileSizes::add(std::uint64_t ino, std::uint64_t size) {
    append_varint(rows_, ino - last_added_);
    append_varint(rows_, size);
    last_added_ = ino;
}

std::uint64_t FileSizes::of(std::uint64_t ino) {
    while (file_.ino < ino && !rows_.is_at_end(next_)) {
        file_.ino += next_number();
        file_.size = next_number();
    }
    return file_.ino == ino ? file_.size : 0;
}

std::uint64_t FileSizes::next_number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const std::uint8_t byte = rows_.read(next_);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

void ColumnsWriter::add(const MetaRow& row) {
    ++meta_.num_rows;
    meta_.keys.add_string(row.key);
    meta_.values.add_string(row.value);
}

void ColumnsWriter::add(const InodeRow& row) {
    ++inode_.num_rows;
    inode_.inos.add(row.ino);
    inode_.modes.add(row.mode);
    inode_.uids.add(row.uid);
    inode_.gids.add(row.gid);
    inode_.sizes.add(row.size);
    inode_.mtimes.add(row.mtime_ns);
    inode_.rdevs.add(row.rdev);
    if ((row.mode & kFileTypeBits) == kSymlinkType) {
        inode_.targets.add_string(row.target);
    }
    extent_.files.add(row.ino, row.size);
}

void ColumnsWriter::add(const EntryRow& row) {
    ++dirent_.num_rows;
    dirent_.parents.add(row.parent);
    dirent_.names.add_string(row.name);
    dirent_.inos.add_signed(minus(row.ino, dirent_.last_ino + 1));
    dirent_.last_ino = row.ino;
}

void ColumnsWriter::add(const ExtentRow& row) {
    ++extent_.num_rows;
    const std::uint64_t file_size = extent_.files.of(row.ino);
    const ExtentRow& last = extent_.last;
    extent_.inos.add(row.ino);
    extent_.file_offsets.add_signed(minus(row.file_offset, expected_file_offset(last, row.ino)));
    extent_.stream_offsets.add_signed(minus(row.stream_offset, last.stream_offset + last.size));
    extent_.sizes.add_signed(minus(row.size, expected_size(file_size, row.file_offset)));
    extent_.last = row;
}

void ColumnsWriter::add(const XattrRow& row) {
    ++xattr_.num_rows;
    xattr_.inos.add(row.ino);
    xattr_.names.add_string(row.name);
    xattr_.value_sizes.add(row.value.size());
    xattr_.values.add_bytes(row.value);
}

void ColumnsWriter::add(const SegmentRow& row) {
    ++segment_.num_rows;
    segment_.archive_offsets.add(row.archive_offset);
    segment_.nums_blocks.add(row.compressed_sizes.size());
    segment_.nums_parts.add(row.part_sizes.size());
    segment_.heads_offsets.add(row.heads_offset);
    for (std::size_t block = 0; block < row.compressed_sizes.size(); ++block) {
        ++block_.num_rows;
        block_.compressed_sizes.add(row.compressed_sizes[block]);
        block_.codecs.add(row.codecs[block]);
    }
    for (std::size_t part = 0; part < row.part_sizes.size(); ++part) {
        ++part_.num_rows;
        part_.kinds.add(row.part_kinds[part]);
        part_.sizes.add(row.part_sizes[part]);
        part_.head_sizes.add(row.head_sizes[part]);
    }
}

void ColumnsWriter::add(const SectionRow& row) {
    ++section_.num_rows;
    section_.segments.add(row.segment);
    section_.kinds.add_string(row.kind);
    section_.uncompressed_sizes.add(row.uncompressed_size);
    section_.archive_offsets.add(row.archive_offset);
    section_.nums_blocks.add(row.compressed_sizes.size());
    for (const std::uint32_t size : row.compressed_sizes) {
        ++section_block_.num_rows;
        section_block_.compressed_sizes.add(size);
    }
}

void ColumnsWriter::add_binary_file(std::uint64_t ino) {
    ++binary_file_.num_rows;
    binary_file_.inos.add(ino);
}

void ColumnsWriter::add(const GenerationRow& row) {
    ++generation_.num_rows;
    generation_.times.add(row.time);
    generation_.nums_added.add(row.num_added);
    generation_.nums_removed.add(row.num_removed);
    generation_.commands.add_string(row.command);
    generation_.comments.add_string(row.comment);
}

void ColumnsWriter::remove_inode(std::uint64_t ino) {
    ++removed_inode_.num_rows;
    removed_inode_.inos.add(ino);
}

void ColumnsWriter::remove_name(const NameRow& row) {
    ++removed_name_.num_rows;
    removed_name_.parents.add(row.parent);
    removed_name_.names.add_string(row.name);
}

template <typename Take>
void ColumnsWriter::for_each_group(IndexKind kind, const Take& take) {
    take(meta_.num_rows, meta_.keys, meta_.values);
    take(inode_.num_rows, inode_.inos, inode_.modes, inode_.uids, inode_.gids, inode_.sizes,
         inode_.mtimes, inode_.rdevs, inode_.targets);
    take(dirent_.num_rows, dirent_.parents, dirent_.names, dirent_.inos);
    take(extent_.num_rows, extent_.inos, extent_.file_offsets, extent_.stream_offsets,
         extent_.sizes);
    take(xattr_.num_rows, xattr_.inos, xattr_.names, xattr_.value_sizes, xattr_.values);
    take(segment_.num_rows, segment_.archive_offsets, segment_.nums_blocks, segment_.nums_parts,
         segment_.heads_offsets);
    take(part_.num_rows, part_.kinds, part_.sizes, part_.head_sizes);
    take(block_.num_rows, block_.compressed_sizes, block_.codecs);
    take(section_.num_rows, section_.segments, section_.kinds, section_.uncompressed_sizes,
         section_.archive_offsets, section_.nums_blocks);
    take(section_block_.num_rows, section_block_.compressed_sizes);
    take(binary_file_.num_rows, binary_file_.inos);
    take(generation_.num_rows, generation_.times, generation_.nums_added, generation_.nums_removed,
         generation_.commands, generation_.comments);
    if (kind == IndexKind::changes) {
        take(removed_inode_.num_rows, removed_inode_.inos);
        take(removed_name_.num_rows, removed_name_.parents, removed_name_.names);
    }
}

StoredColumns ColumnsWriter::finish(IndexKind kind) {
    constexpr std::uint64_t kMaxNumber = 10;  // bytes
    extent_.files = {};
    std::uint64_t size = 0;
    for_each_group(kind, [&](std::uint64_t, const auto&... columns) {
        size += (kMaxNumber + ... + (kMaxNumber + columns.size()));
    });
    StoredColumns stored;
    stored.bytes.reserve(size);
    for_each_group(kind, [&](std::uint64_t num_rows, auto&... columns) {
        append_number(stored.bytes, num_rows);
        const auto move = [&](auto& column) {
            column.move_to(stored.bytes);
            stored.ends.push_back(stored.bytes.size());
        };
        (move(columns), ...);
    });
    return stored;
}

}  // namespace gompfs

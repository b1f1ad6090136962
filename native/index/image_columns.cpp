// Encodes the tables of an index as columns; see image.h.
#include <cstring>
#include <string>

#include "index/columns_writer.h"
#include "index/image.h"
#include "index/image_tables.h"

namespace gompfs {
namespace {

// Returns a number that a column without signs stores.
std::uint64_t unsigned_number(FieldReader& reader, const char* what) {
    const std::int64_t value = reader.integer();
    if (value < 0) {
        fail_index(std::string(what) + " is negative");
    }
    return static_cast<std::uint64_t>(value);
}

std::uint64_t ino_of_rowid(std::int64_t rowid) {
    if (rowid <= 0) {
        fail_index("an inode number is below 1");
    }
    return static_cast<std::uint64_t>(rowid);
}

// Sets the items of a packed column.
template <typename Value>
void read_items(std::string_view bytes, std::vector<Value>& items) {
    if (bytes.size() % sizeof(Value) != 0) {
        fail_index("a packed column does not hold whole numbers");
    }
    items.resize(bytes.size() / sizeof(Value));
    if (!items.empty()) {
        std::memcpy(items.data(), bytes.data(), bytes.size());
    }
}

InodeRow read_inode(std::int64_t rowid, FieldReader& reader) {
    InodeRow row{};
    reader.null();
    row.ino = ino_of_rowid(rowid);
    row.mode = reader.integer();
    row.uid = reader.integer();
    row.gid = reader.integer();
    row.size = unsigned_number(reader, "the size of a file");
    row.mtime_ns = reader.integer();
    reader.integer();  // nlink follows from the names
    row.rdev = unsigned_number(reader, "the number of a device");
    if ((row.mode & kFileTypeBits) == kSymlinkType) {
        row.target = reader.blob();
    } else {
        reader.null();
    }
    return row;
}

// Sets all fields of a row, after which first_block is the next block.
void read_segment(FieldReader& reader, SegmentRow& row) {
    reader.null();
    if (unsigned_number(reader, "the number of a block") != row.first_block) {
        fail_index("the blocks of segments are not numbered in order");
    }
    row.archive_offset = unsigned_number(reader, "an archive offset");
    read_items(reader.blob(), row.compressed_sizes);
    read_items(reader.blob(), row.codecs);
    read_items(reader.blob(), row.part_kinds);
    read_items(reader.blob(), row.part_sizes);
    row.heads_offset = unsigned_number(reader, "an archive offset");
    read_items(reader.blob(), row.head_sizes);
    const std::size_t num_parts = row.part_sizes.size();
    if (row.codecs.size() != row.compressed_sizes.size() || row.part_kinds.size() != num_parts ||
        row.head_sizes.size() != num_parts) {
        fail_index("the packed columns of a segment have different lengths");
    }
    row.first_block += row.compressed_sizes.size();
}

SectionRow read_section(FieldReader& reader) {
    SectionRow row{};
    row.segment = unsigned_number(reader, "the number of a segment");
    row.kind = reader.text();
    row.uncompressed_size = unsigned_number(reader, "the size of a section");
    row.archive_offset = unsigned_number(reader, "an archive offset");
    read_items(reader.blob(), row.compressed_sizes);
    return row;
}

GenerationRow read_generation(FieldReader& reader) {
    GenerationRow row{};
    reader.null();
    row.time = reader.integer();
    row.num_added = unsigned_number(reader, "the number of added entries");
    row.num_removed = unsigned_number(reader, "the number of removed entries");
    row.command = reader.text();
    row.comment = reader.text();
    return row;
}

ExtentRow read_extent(FieldReader& reader) {
    ExtentRow row{};
    row.ino = unsigned_number(reader, "an inode number");
    row.file_offset = unsigned_number(reader, "the file offset of an extent");
    row.stream_offset = unsigned_number(reader, "the stream offset of an extent");
    row.size = unsigned_number(reader, "the size of an extent");
    return row;
}

}  // namespace

StoredColumns columns_of_image(int descriptor) {
    ImageTables tables(descriptor);
    ColumnsWriter writer;
    const auto visit = [&](const char* table, const auto& add) {
        tables.visit(table, [&](std::int64_t rowid, Bytes record) {
            FieldReader reader(record);
            add(rowid, reader);
        });
    };
    visit("meta", [&](std::int64_t, FieldReader& reader) {
        const std::string_view key = reader.text();
        writer.add(MetaRow{key, reader.text()});
    });
    visit("inode",
          [&](std::int64_t rowid, FieldReader& reader) { writer.add(read_inode(rowid, reader)); });
    visit("dirent", [&](std::int64_t, FieldReader& reader) {
        EntryRow row{};
        row.parent = unsigned_number(reader, "an inode number");
        row.name = reader.blob();
        row.ino = unsigned_number(reader, "an inode number");
        writer.add(row);
    });
    visit("extent", [&](std::int64_t, FieldReader& reader) { writer.add(read_extent(reader)); });
    visit("xattr", [&](std::int64_t, FieldReader& reader) {
        XattrRow row{};
        row.ino = unsigned_number(reader, "an inode number");
        row.name = reader.blob();
        const std::string_view value = reader.blob();
        row.value = {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()};
        writer.add(row);
    });
    std::int64_t number = 0;
    SegmentRow segment{};
    visit("segment", [&](std::int64_t rowid, FieldReader& reader) {
        if (rowid != number++) {
            fail_index("the segments are not numbered in order");
        }
        read_segment(reader, segment);
        writer.add(segment);
    });
    visit("section", [&](std::int64_t, FieldReader& reader) { writer.add(read_section(reader)); });
    visit("binary_file",
          [&](std::int64_t rowid, FieldReader&) { writer.add_binary_file(ino_of_rowid(rowid)); });
    number = 0;
    visit("generation", [&](std::int64_t rowid, FieldReader& reader) {
        if (rowid != ++number) {
            fail_index("the generations are not numbered in order");
        }
        writer.add(read_generation(reader));
    });
    return writer.finish(IndexKind::whole);
}

}  // namespace gompfs

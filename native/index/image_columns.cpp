// Encodes the tables of an index as columns; see image.h and index_rows.h, which decodes them.
#include <cstring>
#include <string>
#include <utility>

#include "index/image.h"
#include "index/image_tables.h"
#include "index/index_rows.h"

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

std::int64_t minus(std::uint64_t number, std::uint64_t other) {
    return static_cast<std::int64_t>(number - other);
}

// Writes a column of numbers with signs, each as the difference to the one before.
class DifferenceWriter {
  public:
    void add(std::int64_t value) {
        column_.add_signed(minus(static_cast<std::uint64_t>(value), last_));
        last_ = static_cast<std::uint64_t>(value);
    }
    const NumberColumnWriter& column() const { return column_; }

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
            fail_index("a key is below 1");  // SQLite has them in order
        }
        column_.add(value - last_ - least_);
        last_ = value;
    }
    const NumberColumnWriter& column() const { return column_; }

  private:
    NumberColumnWriter column_;
    std::uint64_t least_, last_ = 0;
};

// The items of a packed column.
template <typename Value>
std::vector<Value> items_of(std::string_view bytes) {
    if (bytes.size() % sizeof(Value) != 0) {
        fail_index("a packed column does not hold whole numbers");
    }
    std::vector<Value> items(bytes.size() / sizeof(Value));
    if (!items.empty()) {
        std::memcpy(items.data(), bytes.data(), bytes.size());
    }
    return items;
}

class ColumnsWriter {
  public:
    explicit ColumnsWriter(Bytes image) : image_(image) {}

    StoredColumns write() {
        write_meta();
        write_inodes();
        write_entries();
        write_extents();
        write_xattrs();
        write_segments();
        write_sections();
        write_binary_files();
        return std::move(columns_);
    }

  private:
    template <typename Add>
    std::uint64_t visit(std::string_view table, const Add& add) {
        std::uint64_t num_rows = 0;
        image_.visit(table, [&](std::int64_t rowid, Bytes record) {
            FieldReader reader(record);
            add(rowid, reader);
            ++num_rows;
        });
        return num_rows;
    }

    static const NumberColumnWriter& column_of(const DifferenceWriter& writer) {
        return writer.column();
    }
    static const NumberColumnWriter& column_of(const AscendingWriter& writer) {
        return writer.column();
    }
    template <typename Writer>
    static const Writer& column_of(const Writer& writer) {
        return writer;
    }

    template <typename... Writers>
    void append(std::uint64_t num_rows, const Writers&... writers) {
        append_number(columns_.bytes, num_rows);
        const auto append_one = [&](const auto& column) {
            column.append_to(columns_.bytes);
            columns_.ends.push_back(columns_.bytes.size());
        };
        (append_one(column_of(writers)), ...);
    }

    void write_meta();
    void write_inodes();
    void write_entries();
    void write_extents();
    void write_xattrs();
    void write_segments();
    void write_sections();
    void write_binary_files();

    ImageTables image_;
    StoredColumns columns_;
    std::vector<FileRow> sizes_;  // of all inodes
};

void ColumnsWriter::write_meta() {
    ByteColumnWriter keys, values;
    const std::uint64_t num_rows = visit("meta", [&](std::int64_t, FieldReader& reader) {
        keys.add_string(reader.text());
        values.add_string(reader.text());
    });
    append(num_rows, keys, values);
}

void ColumnsWriter::write_inodes() {
    AscendingWriter inos(1);
    DifferenceWriter modes, uids, gids, mtimes;
    NumberColumnWriter sizes, rdevs;
    ByteColumnWriter targets;
    const std::uint64_t num_rows = visit("inode", [&](std::int64_t rowid, FieldReader& reader) {
        reader.null();
        if (rowid <= 0) {
            fail_index("an inode number is below 1");
        }
        inos.add(static_cast<std::uint64_t>(rowid));
        const std::int64_t mode = reader.integer();
        modes.add(mode);
        uids.add(reader.integer());
        gids.add(reader.integer());
        const std::uint64_t size = unsigned_number(reader, "the size of a file");
        sizes.add(size);
        sizes_.push_back({static_cast<std::uint64_t>(rowid), size});
        mtimes.add(reader.integer());
        reader.integer();  // nlink follows from the names
        rdevs.add(unsigned_number(reader, "the number of a device"));
        if ((mode & kFileTypeBits) == kSymlinkType) {
            targets.add_string(reader.blob());
        } else {
            reader.null();
        }
    });
    append(num_rows, inos, modes, uids, gids, sizes, mtimes, rdevs, targets);
}

void ColumnsWriter::write_entries() {
    AscendingWriter parents(0);
    ByteColumnWriter names;
    NumberColumnWriter inos;
    std::uint64_t last = 0;
    const std::uint64_t num_rows = visit("dirent", [&](std::int64_t, FieldReader& reader) {
        parents.add(unsigned_number(reader, "an inode number"));
        names.add_string(reader.blob());
        const std::uint64_t ino = unsigned_number(reader, "an inode number");
        inos.add_signed(minus(ino, last + 1));
        last = ino;
    });
    append(num_rows, parents, names, inos);
}

void ColumnsWriter::write_extents() {
    AscendingWriter inos(0);
    NumberColumnWriter file_offsets, stream_offsets, sizes;
    ExtentRow last{};
    auto inode = sizes_.cbegin();
    const std::uint64_t num_rows = visit("extent", [&](std::int64_t, FieldReader& reader) {
        ExtentRow row{};
        row.ino = unsigned_number(reader, "an inode number");
        row.file_offset = unsigned_number(reader, "the file offset of an extent");
        row.stream_offset = unsigned_number(reader, "the stream offset of an extent");
        row.size = unsigned_number(reader, "the size of an extent");
        while (inode != sizes_.cend() && inode->ino < row.ino) {
            ++inode;
        }
        const std::uint64_t file_size =
            inode != sizes_.cend() && inode->ino == row.ino ? inode->size : 0;
        inos.add(row.ino);
        file_offsets.add_signed(minus(row.file_offset, expected_file_offset(last, row.ino)));
        stream_offsets.add_signed(minus(row.stream_offset, last.stream_offset + last.size));
        sizes.add_signed(minus(row.size, expected_size(file_size, row.file_offset)));
        last = row;
    });
    append(num_rows, inos, file_offsets, stream_offsets, sizes);
}

void ColumnsWriter::write_xattrs() {
    AscendingWriter inos(0);
    ByteColumnWriter names, values;
    NumberColumnWriter value_sizes;
    const std::uint64_t num_rows = visit("xattr", [&](std::int64_t, FieldReader& reader) {
        inos.add(unsigned_number(reader, "an inode number"));
        names.add_string(reader.blob());
        const std::string_view value = reader.blob();
        value_sizes.add(value.size());
        values.add_bytes({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
    });
    append(num_rows, inos, names, value_sizes, values);
}

void ColumnsWriter::write_segments() {
    NumberColumnWriter archive_offsets, nums_blocks, nums_parts, heads_offsets;
    NumberColumnWriter part_kinds, part_sizes, head_sizes, codecs;
    DifferenceWriter compressed_sizes;
    std::uint64_t num_blocks = 0, num_parts = 0, number = 0;
    const std::uint64_t num_rows = visit("segment", [&](std::int64_t rowid, FieldReader& reader) {
        reader.null();
        if (static_cast<std::uint64_t>(rowid) != number++ ||
            unsigned_number(reader, "the number of a block") != num_blocks) {
            fail_index("the segments or their blocks are not numbered in order");
        }
        archive_offsets.add(unsigned_number(reader, "an archive offset"));
        const auto block_sizes = items_of<std::uint32_t>(reader.blob());
        const std::string_view of_blocks = reader.blob(), kinds = reader.blob();
        const auto sizes = items_of<std::uint64_t>(reader.blob());
        heads_offsets.add(unsigned_number(reader, "an archive offset"));
        const auto heads = items_of<std::uint32_t>(reader.blob());
        if (of_blocks.size() != block_sizes.size() || kinds.size() != sizes.size() ||
            heads.size() != sizes.size()) {
            fail_index("the packed columns of a segment have different lengths");
        }
        nums_blocks.add(block_sizes.size());
        nums_parts.add(sizes.size());
        for (std::size_t block = 0; block < block_sizes.size(); ++block) {
            compressed_sizes.add(block_sizes[block]);
            codecs.add(static_cast<std::uint8_t>(of_blocks[block]));
        }
        for (std::size_t part = 0; part < sizes.size(); ++part) {
            part_kinds.add(static_cast<std::uint8_t>(kinds[part]));
            part_sizes.add(sizes[part]);
            head_sizes.add(heads[part]);
        }
        num_blocks += block_sizes.size();
        num_parts += sizes.size();
    });
    append(num_rows, archive_offsets, nums_blocks, nums_parts, heads_offsets);
    append(num_parts, part_kinds, part_sizes, head_sizes);
    append(num_blocks, compressed_sizes, codecs);
}

void ColumnsWriter::write_sections() {
    AscendingWriter segments(0);
    ByteColumnWriter kinds;
    NumberColumnWriter uncompressed_sizes, archive_offsets, nums_blocks;
    DifferenceWriter compressed_sizes;
    std::uint64_t num_blocks = 0;
    const std::uint64_t num_rows = visit("section", [&](std::int64_t, FieldReader& reader) {
        segments.add(unsigned_number(reader, "the number of a segment"));
        kinds.add_string(reader.text());
        uncompressed_sizes.add(unsigned_number(reader, "the size of a section"));
        archive_offsets.add(unsigned_number(reader, "an archive offset"));
        const auto sizes = items_of<std::uint32_t>(reader.blob());
        nums_blocks.add(sizes.size());
        for (const std::uint32_t size : sizes) {
            compressed_sizes.add(size);
        }
        num_blocks += sizes.size();
    });
    append(num_rows, segments, kinds, uncompressed_sizes, archive_offsets, nums_blocks);
    append(num_blocks, compressed_sizes);
}

void ColumnsWriter::write_binary_files() {
    AscendingWriter inos(1);
    const std::uint64_t num_rows = visit("binary_file", [&](std::int64_t rowid, FieldReader&) {
        if (rowid <= 0) {
            fail_index("an inode number is below 1");
        }
        inos.add(static_cast<std::uint64_t>(rowid));
    });
    append(num_rows, inos);
}

}  // namespace

StoredColumns columns_of_image(Bytes image) { return ColumnsWriter(image).write(); }

}  // namespace gompfs

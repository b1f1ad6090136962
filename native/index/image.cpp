// Builds the image of an index; see image.h.
#include "index/image.h"

#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include "index/index_rows.h"
#include "index/link_counts.h"
#include "index/tree_writer.h"

namespace gompfs {
namespace {

static_assert(std::endian::native == std::endian::little, "packed columns are little-endian");

template <typename Value>
Bytes bytes_of(const std::vector<Value>& values) {
    return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(Value)};
}

// Writes the tables of an index, each as a b-tree.
class ImageBuilder {
  public:
    explicit ImageBuilder(Bytes columns, int descriptor = -1)
        : columns_(columns), pages_(3 * columns.size() + (std::size_t{16} << 10), descriptor) {}

    // Returns the pages of all tables.
    ImagePages& build(std::span<const TableStatement> tables);

  private:
    static constexpr auto kRows = TreeWriter::Kind::rows, kRecords = TreeWriter::Kind::records;

    // Writes the b-tree of a table. `add` adds the fields of a row to record_, and returns the
    // rowid, or 0 for a table WITHOUT ROWID.
    template <typename Row, typename Rows, typename Add>
    std::uint32_t write_table(TreeWriter::Kind kind, Rows rows, const Add& add) {
        TreeWriter tree(pages_, kind);
        for (Row row{}; rows.next(row);) {
            record_.begin();
            const auto rowid = static_cast<std::int64_t>(add(row));
            tree.add(rowid, record_.finish());
        }
        return tree.finish();
    }

    std::uint32_t write_meta();
    std::uint32_t write_inodes();
    std::uint32_t write_entries();
    std::uint32_t write_extents();
    std::uint32_t write_xattrs();
    std::uint32_t write_segments();
    std::uint32_t write_sections();
    std::uint32_t write_binary_files();
    std::uint32_t write_generations();

    IndexColumns columns_;
    ImagePages pages_;
    RecordWriter record_;
};

std::uint32_t ImageBuilder::write_meta() {
    return write_table<MetaRow>(kRecords, MetaRows(columns_), [&](const MetaRow& row) {
        record_.add_text(row.key);
        record_.add_text(row.value);
        return 0;
    });
}

std::uint32_t ImageBuilder::write_inodes() {
    const LinkCounts links(columns_);
    std::size_t position = 0;
    return write_table<InodeRow>(kRows, InodeRows(columns_), [&](const InodeRow& row) {
        record_.add_null();  // the number is the rowid
        record_.add_integer(row.mode);
        record_.add_integer(row.uid);
        record_.add_integer(row.gid);
        record_.add_integer(row.size);
        record_.add_integer(row.mtime_ns);
        record_.add_integer(links.of(position++));
        record_.add_integer(row.rdev);
        if ((row.mode & kFileTypeBits) == kSymlinkType) {
            record_.add_blob(row.target);
        } else {
            record_.add_null();
        }
        return row.ino;
    });
}

std::uint32_t ImageBuilder::write_entries() {
    return write_table<EntryRow>(kRecords, EntryRows(columns_), [&](const EntryRow& row) {
        record_.add_integer(row.parent);
        record_.add_blob(row.name);
        record_.add_integer(row.ino);
        return 0;
    });
}

std::uint32_t ImageBuilder::write_extents() {
    return write_table<ExtentRow>(kRecords, ExtentRows(columns_), [&](const ExtentRow& row) {
        record_.add_integer(row.ino);
        record_.add_integer(row.file_offset);
        record_.add_integer(row.stream_offset);
        record_.add_integer(row.size);
        return 0;
    });
}

std::uint32_t ImageBuilder::write_xattrs() {
    return write_table<XattrRow>(kRecords, XattrRows(columns_), [&](const XattrRow& row) {
        record_.add_integer(row.ino);
        record_.add_blob(row.name);
        record_.add_blob(row.value);
        return 0;
    });
}

std::uint32_t ImageBuilder::write_segments() {
    std::uint64_t number = 0;
    return write_table<SegmentRow>(kRows, SegmentRows(columns_), [&](const SegmentRow& row) {
        record_.add_null();  // the number is the rowid
        record_.add_integer(row.first_block);
        record_.add_integer(row.archive_offset);
        record_.add_blob(bytes_of(row.compressed_sizes));
        record_.add_blob(bytes_of(row.codecs));
        record_.add_blob(bytes_of(row.part_kinds));
        record_.add_blob(bytes_of(row.part_sizes));
        record_.add_integer(row.heads_offset);
        record_.add_blob(bytes_of(row.head_sizes));
        return number++;
    });
}

std::uint32_t ImageBuilder::write_sections() {
    return write_table<SectionRow>(kRecords, SectionRows(columns_), [&](const SectionRow& row) {
        record_.add_integer(row.segment);
        record_.add_text(row.kind);
        record_.add_integer(row.uncompressed_size);
        record_.add_integer(row.archive_offset);
        record_.add_blob(bytes_of(row.compressed_sizes));
        return 0;
    });
}

std::uint32_t ImageBuilder::write_binary_files() {
    return write_table<std::uint64_t>(kRows, BinaryFileRows(columns_), [&](std::uint64_t ino) {
        record_.add_null();
        return ino;
    });
}

std::uint32_t ImageBuilder::write_generations() {
    std::uint64_t number = 0;
    return write_table<GenerationRow>(kRows, GenerationRows(columns_), [&](const auto& row) {
        record_.add_null();  // the number is the rowid
        record_.add_integer(row.time);
        record_.add_integer(row.num_added);
        record_.add_integer(row.num_removed);
        record_.add_text(row.command);
        record_.add_text(row.comment);
        return ++number;
    });
}

ImagePages& ImageBuilder::build(std::span<const TableStatement> tables) {
    // Segments first, since a reader needs them at once.
    const std::map<std::string_view, std::uint32_t> roots = {
        {"meta", write_meta()},
        {"segment", write_segments()},
        {"section", write_sections()},
        {"inode", write_inodes()},
        {"dirent", write_entries()},
        {"extent", write_extents()},
        {"xattr", write_xattrs()},
        {"binary_file", write_binary_files()},
        {"generation", write_generations()},
    };
    std::vector<std::vector<std::uint8_t>> records;
    for (const TableStatement& table : tables) {
        record_.begin();
        record_.add_text("table");
        record_.add_text(table.name);
        record_.add_text(table.name);
        record_.add_integer(std::uint64_t{roots.at(table.name)});
        record_.add_text(table.sql);
        const Bytes record = record_.finish();
        records.emplace_back(record.begin(), record.end());
    }
    write_first_page(pages_, records);
    return pages_;
}

}  // namespace

LargeVector<std::uint8_t> build_image(Bytes columns, std::span<const TableStatement> tables) {
    return ImageBuilder(columns).build(tables).release();
}

void write_image(Bytes columns, std::span<const TableStatement> tables, int descriptor) {
    ImageBuilder(columns, descriptor).build(tables).finish_file();
}

}  // namespace gompfs

// Reads the rows of files from the pages of an index; see file_rows.h.
#include "index/file_rows.h"

#include "index/records.h"
#include "index/tree_pages.h"
#include "index/tree_walk.h"

namespace gompfs {
namespace {

using Record = std::span<const std::uint8_t>;

constexpr std::int64_t kTypeBits = 0170000, kRegularFile = 0100000;  // of a mode

// Visits the rows of a table that is a b-tree of records, or of rows.
template <typename Visit>
void visit_table(Pages& pages, Root root, bool has_rows, const Visit& visit) {
    TreeWalk walk(pages, root, visit);
    if (walk.has_rows() != has_rows) {
        fail_image("a table is not stored as that of an index is");
    }
    walk.run();
}

std::uint64_t next_number(FieldReader& reader) {
    Field field;
    reader.read(field);
    if (!field.is_integer() || field.integer < 0) {
        fail_image("a number of a file is impossible");
    }
    return static_cast<std::uint64_t>(field.integer);
}

std::string_view next_name(FieldReader& reader) {
    Field field;
    reader.read(field);
    const std::string_view name(reinterpret_cast<const char*>(field.bytes), field.size);
    if (field.rank != Field::Rank::blob || name.empty() || name.find('/') != name.npos ||
        name.find('\0') != name.npos || name == "." || name == "..") {
        fail_image("a name is impossible");
    }
    return name;
}

bool is_inside(std::string_view name, Record image) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(name.data());
    return bytes >= image.data() && bytes + name.size() <= image.data() + image.size();
}

}  // namespace

FileRows read_file_rows(Record image, const FileTables& tables) {
    Pages pages(image);
    FileRows rows;
    visit_table(pages, {tables.dirent, 2}, false, [&](std::int64_t, Record record) {
        FieldReader reader(record);
        const std::uint64_t parent = next_number(reader);
        std::string_view name = next_name(reader);
        if (!is_inside(name, image)) {
            name = rows.split_names.emplace_back(name);
        }
        rows.entries.push_back({parent, next_number(reader), name});
    });
    visit_table(pages, {tables.inode, 0}, true, [&](std::int64_t rowid, Record record) {
        FieldReader reader(record);
        Field field;
        reader.read(field);  // ino: NULL, because it is the rowid
        reader.read(field);
        if (!field.is_integer()) {
            fail_image("a mode is impossible");
        }
        if ((field.integer & kTypeBits) != kRegularFile) {
            return;
        }
        reader.read(field);  // uid
        reader.read(field);  // gid
        if (rowid < 0) {
            fail_image("a number of a file is impossible");
        }
        rows.files.push_back({static_cast<std::uint64_t>(rowid), next_number(reader)});
    });
    visit_table(pages, {tables.extent, 2}, false, [&](std::int64_t, Record record) {
        FieldReader reader(record);
        ExtentRow row{};
        row.ino = next_number(reader);
        row.file_offset = next_number(reader);
        row.stream_offset = next_number(reader);
        row.size = next_number(reader);
        rows.extents.push_back(row);
    });
    return rows;
}

}  // namespace gompfs

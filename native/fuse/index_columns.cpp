// Parses rows of the index that SQLite concatenated into one string per column; see
// index_columns.h.
//
// The index is untrusted input. Every number is checked against its range, names against what a
// directory entry may be, and the columns against each other: they must have equally many fields,
// directories must ascend, and extents must not overlap.
#include "fuse/index_columns.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <stdexcept>
#include <unordered_set>

#include "fuse/reader_table.h"

namespace gompfs {

namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxIno = (std::int64_t{1} << ReaderTable::kSnapshotShift) - 1;

constexpr std::size_t kMaxNameSize = 255;

bool has_file_type(std::uint32_t mode) {
    switch (mode & S_IFMT) {
        case S_IFIFO:
        case S_IFCHR:
        case S_IFDIR:
        case S_IFBLK:
        case S_IFREG:
        case S_IFLNK:
        case S_IFSOCK:
            return true;
        default:
            return false;
    }
}

[[noreturn]] void fail() { throw std::invalid_argument("the index has an impossible entry"); }

// Reads the fields of one column in order.
class Column {
  public:
    Column(std::string_view text, char separator) : rest_(text), separator_(separator) {}

    bool is_at_end() const { return is_at_end_; }

    std::string_view next() {
        if (is_at_end_) {
            fail();
        }
        const std::size_t end = rest_.find(separator_);
        const std::string_view field = rest_.substr(0, end);
        is_at_end_ = end == std::string_view::npos;
        rest_.remove_prefix(is_at_end_ ? rest_.size() : end + 1);
        return field;
    }

    std::int64_t next_number(std::int64_t least, std::int64_t most) {
        const std::string_view field = next();
        std::int64_t value = 0;
        const char* const end = field.data() + field.size();
        const auto [stop, error] = std::from_chars(field.data(), end, value);
        if (error != std::errc() || stop != end || value < least || value > most) {
            fail();
        }
        return value;
    }

  private:
    std::string_view rest_;
    char separator_;
    bool is_at_end_ = false;
};

// Reads the rows of all columns in parallel.
class Rows {
  public:
    Rows(const DirectoryColumns& columns, const NodeMapping& mapping)
        : parents_(columns.parents, ','), names_(columns.names, '/'), mapping_(mapping) {
        for (const std::string_view field : columns.fields) {
            fields_.emplace_back(field, ',');
        }
    }

    bool is_at_end() const { return parents_.is_at_end(); }
    std::uint64_t next_parent() {
        return mapping_.first_node + static_cast<std::uint64_t>(parents_.next_number(1, kMaxIno));
    }

    std::string_view next_name() {
        const std::string_view name = names_.next();
        if (name.empty() || name.size() > kMaxNameSize || name == "." || name == ".." ||
            name.find('\0') != std::string_view::npos) {
            fail();
        }
        return name;
    }

    InodeFields next_inode() {
        const auto number = [&](std::size_t index, std::int64_t most) {
            return fields_[index].next_number(0, most);
        };
        InodeFields inode{};
        inode.ino =
            mapping_.first_node + static_cast<std::uint64_t>(fields_[0].next_number(1, kMaxIno));
        const auto mode = static_cast<std::uint32_t>(number(1, 0xffff));
        if (!has_file_type(mode)) {
            fail();
        }
        inode.mode = mode & ~mapping_.umask;
        inode.uid = mapping_.uid.value_or(static_cast<std::uint32_t>(number(2, kMax32)));
        inode.gid = mapping_.gid.value_or(static_cast<std::uint32_t>(number(3, kMax32)));
        inode.size = static_cast<std::uint64_t>(number(4, kMax64));
        inode.mtime_ns = fields_[5].next_number(std::numeric_limits<std::int64_t>::min(), kMax64);
        inode.nlink = static_cast<std::uint32_t>(number(6, kMax32));
        inode.rdev = static_cast<std::uint64_t>(number(7, kMax64));
        return inode;
    }

    // Whether all columns ended together with `parents`.
    bool are_even() const {
        return names_.is_at_end() &&
               std::all_of(fields_.begin(), fields_.end(),
                           [](const Column& column) { return column.is_at_end(); });
    }

  private:
    Column parents_, names_;
    std::vector<Column> fields_;
    const NodeMapping mapping_;
};

// Adds listings for the directories in the range that have no rows, because they are empty.
void add_empty(ListingBatch& batch, std::uint64_t first, std::uint64_t end,
               std::uint32_t cache_seconds) {
    std::unordered_set<std::uint64_t> listed;
    std::vector<std::uint64_t> subdirectories;
    for (const auto& [node, listing] : batch) {
        listed.insert(node);
        for (const InodeFields& inode : listing->inodes()) {
            if (S_ISDIR(inode.mode) && inode.ino >= first && inode.ino < end) {
                subdirectories.push_back(inode.ino);
            }
        }
    }
    for (const std::uint64_t node : subdirectories) {
        if (listed.insert(node).second) {
            batch.emplace_back(node, std::make_shared<Listing>(node, cache_seconds));
        }
    }
}

}  // namespace

ListingBatch read_directories(const DirectoryColumns& columns, std::uint64_t first,
                              std::uint64_t end, const NodeMapping& mapping,
                              const StoredSizes& stored_sizes, std::uint32_t cache_seconds) {
    first += mapping.first_node;
    end += mapping.first_node;
    ListingBatch batch;
    Rows rows(columns, mapping);
    std::shared_ptr<Listing> listing;
    std::uint64_t parent = 0;
    while (!rows.is_at_end()) {
        const std::uint64_t next_parent = rows.next_parent();
        if (!listing || next_parent != parent) {
            if (next_parent < (listing ? parent + 1 : first)) {
                fail();
            }
            parent = next_parent;
            listing = std::make_shared<Listing>(parent, cache_seconds);
            if (parent < end) {
                batch.emplace_back(parent, listing);
            }
        }
        const std::string_view name = rows.next_name();
        const InodeFields inode = rows.next_inode();
        listing->add(name, inode, stored_sizes.of(inode.ino - mapping.first_node, inode.size));
    }
    if (!rows.are_even()) {
        fail();
    }
    add_empty(batch, first, end, cache_seconds);
    return batch;
}

std::vector<std::pair<std::uint64_t, FileLayout>> read_layouts(const LayoutColumns& columns,
                                                               std::uint64_t end) {
    std::vector<std::pair<std::uint64_t, FileLayout>> layouts;
    Column inos(columns[0], ','), sizes(columns[1], ','), file_offsets(columns[2], ','),
        stream_offsets(columns[3], ','), extent_sizes(columns[4], ',');
    while (!inos.is_at_end()) {
        const auto ino = static_cast<std::uint64_t>(inos.next_number(0, kMax64));
        const auto size = static_cast<std::uint64_t>(sizes.next_number(0, kMax64));
        const std::int64_t file_offset = file_offsets.next_number(-1, kMax64);
        const std::int64_t stream_offset = stream_offsets.next_number(-1, kMax64);
        const std::int64_t extent_size = extent_sizes.next_number(-1, kMax64);
        if (layouts.empty() || layouts.back().first != ino) {
            if (!layouts.empty() && ino < layouts.back().first) {
                fail();
            }
            layouts.push_back({ino, {size, {}}});
        }
        std::vector<FileExtent>& extents = layouts.back().second.extents;
        if (extent_size == -1) {
            continue;
        }
        const FileExtent extent{static_cast<std::uint64_t>(file_offset),
                                static_cast<std::uint64_t>(stream_offset),
                                static_cast<std::uint64_t>(extent_size)};
        const std::uint64_t known_end =
            extents.empty() ? 0 : extents.back().file_offset + extents.back().size;
        if (file_offset < 0 || stream_offset < 0 || extent_size == 0 ||
            extent.file_offset < known_end) {
            fail();
        }
        extents.push_back(extent);
    }
    for (const Column& column : {sizes, file_offsets, stream_offsets, extent_sizes}) {
        if (!column.is_at_end()) {
            fail();
        }
    }
    std::erase_if(layouts, [&](const auto& layout) { return layout.first >= end; });
    return layouts;
}

}  // namespace gompfs

// Parses rows of the index that SQLite concatenated into one string per column; see
// index_columns.h.
//
// The index is untrusted input. Every number is checked against its range, names against what a
// directory entry may be, and the columns against each other: they must have equally many fields,
// and directories must ascend.
#include "fuse/index_columns.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>

#include "common/index_column.h"
#include "fuse/reader_table.h"

namespace gompfs {

namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
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
            fail_index_entry();
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
            fail_index_entry();
        }
        inode.mode = mode & ~mapping_.umask;
        inode.uid = mapping_.uid.value_or(static_cast<std::uint32_t>(number(2, kMax32)));
        inode.gid = mapping_.gid.value_or(static_cast<std::uint32_t>(number(3, kMax32)));
        inode.size = static_cast<std::uint64_t>(number(4, kMaxIndexInteger));
        inode.mtime_ns =
            fields_[5].next_number(std::numeric_limits<std::int64_t>::min(), kMaxIndexInteger);
        inode.nlink = static_cast<std::uint32_t>(number(6, kMax32));
        inode.rdev = static_cast<std::uint64_t>(number(7, kMaxIndexInteger));
        return inode;
    }

    // Whether all columns ended together with `parents`.
    bool are_even() const {
        return names_.is_at_end() &&
               std::all_of(fields_.begin(), fields_.end(),
                           [](const IndexColumn& column) { return column.is_at_end(); });
    }

  private:
    IndexColumn parents_, names_;
    std::vector<IndexColumn> fields_;
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
                fail_index_entry();
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
        fail_index_entry();
    }
    add_empty(batch, first, end, cache_seconds);
    return batch;
}

}  // namespace gompfs

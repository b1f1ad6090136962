// Finds the changes from one index to another; see changes.h.
#include <algorithm>
#include <tuple>
#include <vector>

#include "index/changes.h"
#include "index/index_rows.h"

namespace gompfs {
namespace {

std::uint64_t key_of(std::uint64_t ino) { return ino; }
std::uint64_t key_of(const InodeRow& row) { return row.ino; }
auto key_of(const ExtentRow& row) { return std::tuple(row.ino, row.file_offset); }
auto key_of(const XattrRow& row) { return std::tuple(row.ino, row.name); }
auto key_of(const EntryRow& row) { return std::tuple(row.parent, row.name); }
auto key_of(const SectionRow& row) { return std::tuple(row.segment, row.kind); }

bool are_equal(std::uint64_t, std::uint64_t) { return true; }
bool are_equal(const InodeRow& one, const InodeRow& other) {
    return std::tie(one.mode, one.uid, one.gid, one.size, one.mtime_ns, one.rdev, one.target) ==
           std::tie(other.mode, other.uid, other.gid, other.size, other.mtime_ns, other.rdev,
                    other.target);
}
bool are_equal(const ExtentRow& one, const ExtentRow& other) {
    return one.stream_offset == other.stream_offset && one.size == other.size;
}
bool are_equal(const XattrRow& one, const XattrRow& other) {
    return std::ranges::equal(one.value, other.value);
}
bool are_equal(const EntryRow& one, const EntryRow& other) { return one.ino == other.ino; }
bool are_equal(const SectionRow& one, const SectionRow& other) {
    return std::tie(one.uncompressed_size, one.archive_offset, one.compressed_sizes) ==
           std::tie(other.uncompressed_size, other.archive_offset, other.compressed_sizes);
}
bool are_equal(const GenerationRow& one, const GenerationRow& other) {
    return std::tie(one.time, one.num_added, one.num_removed, one.command, one.comment) ==
           std::tie(other.time, other.num_added, other.num_removed, other.command, other.comment);
}
bool are_equal(const SegmentRow& one, const SegmentRow& other) {
    return std::tie(one.archive_offset, one.heads_offset, one.compressed_sizes, one.head_sizes,
                    one.codecs, one.part_kinds, one.part_sizes) ==
           std::tie(other.archive_offset, other.heads_offset, other.compressed_sizes,
                    other.head_sizes, other.codecs, other.part_kinds, other.part_sizes);
}

// Calls `gone` for rows whose keys are only in the first index, and `is_new` for rows of the other
// one that differ.
template <typename Row, typename Rows, typename Gone, typename IsNew>
void compare(const IndexColumns& before, const IndexColumns& after, const Gone& gone,
             const IsNew& is_new) {
    Rows old_rows(before), new_rows(after);
    Row old_row{}, new_row{};
    bool has_old = old_rows.next(old_row), has_new = new_rows.next(new_row);
    while (has_old || has_new) {
        if (has_old && (!has_new || key_of(old_row) < key_of(new_row))) {
            gone(old_row);
            has_old = old_rows.next(old_row);
            continue;
        }
        const bool has_both = has_old && key_of(old_row) == key_of(new_row);
        if (!has_both || !are_equal(old_row, new_row)) {
            is_new(new_row);
        }
        has_new = new_rows.next(new_row);
        has_old = has_both ? old_rows.next(old_row) : has_old;
    }
}

class ChangeFinder {
  public:
    ChangeFinder(Bytes before, Bytes after) : before_(before), after_(after) {}

    StoredColumns find() {
        MetaRows facts(after_);
        for (MetaRow row{}; facts.next(row);) {
            writer_.add(row);
        }
        find_inodes();
        write_inodes();
        compare<EntryRow, EntryRows>(
            before_, after_,
            [&](const EntryRow& row) { writer_.remove_name({row.parent, row.name}); },
            [&](const EntryRow& row) { writer_.add(row); });
        write_appended<SegmentRow, SegmentRows>("a segment is gone");
        compare<SectionRow, SectionRows>(
            before_, after_, [](const SectionRow&) { fail_index("a section is gone"); },
            [&](const SectionRow& row) { writer_.add(row); });
        write_appended<GenerationRow, GenerationRows>("a generation is gone");
        return writer_.finish(IndexKind::changes);
    }

  private:
    // Finds all inodes of which a row is new, different or gone.
    void find_inodes() {
        const auto add = [&](const auto& row) { changed_.push_back(row.ino); };
        const auto add_ino = [&](std::uint64_t ino) { changed_.push_back(ino); };
        compare<InodeRow, InodeRows>(before_, after_, add, add);
        compare<ExtentRow, ExtentRows>(before_, after_, add, add);
        compare<XattrRow, XattrRows>(before_, after_, add, add);
        compare<std::uint64_t, BinaryFileRows>(before_, after_, add_ino, add_ino);
        std::ranges::sort(changed_);
        const auto rest = std::ranges::unique(changed_);
        changed_.erase(rest.begin(), rest.end());
    }

    void write_inodes() {
        std::vector<std::uint64_t> kept;
        write_changed<InodeRow, InodeRows>([&](const InodeRow& row) {
            writer_.add(row);
            kept.push_back(row.ino);
        });
        auto next = kept.cbegin();
        for (const std::uint64_t ino : changed_) {
            if (next != kept.cend() && *next == ino) {
                ++next;
            } else {
                writer_.remove_inode(ino);
            }
        }
        write_changed<ExtentRow, ExtentRows>([&](const ExtentRow& row) { writer_.add(row); });
        write_changed<XattrRow, XattrRows>([&](const XattrRow& row) { writer_.add(row); });
        write_changed<std::uint64_t, BinaryFileRows>(
            [&](std::uint64_t ino) { writer_.add_binary_file(ino); });
    }

    static std::uint64_t ino_of(std::uint64_t ino) { return ino; }
    template <typename Row>
    static std::uint64_t ino_of(const Row& row) {
        return row.ino;
    }

    // Calls `write` for the rows of `after` that belong to changed inodes.
    template <typename Row, typename Rows, typename Write>
    void write_changed(const Write& write) {
        Rows rows(after_);
        auto next = changed_.cbegin();
        for (Row row{}; rows.next(row);) {
            while (next != changed_.cend() && *next < ino_of(row)) {
                ++next;
            }
            if (next != changed_.cend() && *next == ino_of(row)) {
                write(row);
            }
        }
    }

    // Writes the rows of a table that follow those of `before`.
    template <typename Row, typename Rows>
    void write_appended(const char* is_gone) {
        Rows old_rows(before_), new_rows(after_);
        Row old_row{}, new_row{};
        while (old_rows.next(old_row)) {
            if (!new_rows.next(new_row) || !are_equal(old_row, new_row)) {
                fail_index(is_gone);
            }
        }
        while (new_rows.next(new_row)) {
            writer_.add(new_row);
        }
    }

    IndexColumns before_, after_;
    std::vector<std::uint64_t> changed_;
    ColumnsWriter writer_;
};

}  // namespace

StoredColumns changes_between(Bytes before, Bytes after) {
    return ChangeFinder(before, after).find();
}

}  // namespace gompfs

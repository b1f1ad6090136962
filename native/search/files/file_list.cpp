// Lists the files of an archive; see file_list.h.
#include "search/files/file_list.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "common/index_column.h"
#include "search/match/match.h"

namespace gompfs::search {
namespace {

constexpr std::uint64_t kMinPathBytes = 16 << 20, kMeanPathBytes = 4096;
constexpr std::uint64_t kMaxDirectories = 1 << 24;
constexpr std::uint64_t kVisitsOfEntry = 2, kMoreVisits = 1 << 20;  // by all roots together

[[noreturn]] void fail_roots() {
    throw SearchError(
        "the paths of all directories are too long together, or paths to search name the same "
        "files too often");
}

}  // namespace

// Walks over the tree, from one root after another.
class FileList::TreeReader {
  public:
    TreeReader(FileList& list, std::span<const EntryRow> entries, const ListOptions& options,
               const Read& read)
        : list_(list),
          globs_(GlobList(options.glob), GlobList(options.type_glob)),
          max_depth_(options.max_depth.value_or(~std::uint64_t{0})),
          entries_(entries),
          rules_(options.ignore, options.ignore_file,
                 [this, &read](std::uint64_t ino, std::size_t max_size, std::string& problem) {
                     return read_rules(read, ino, max_size, problem);
                 }) {
        path_bytes_left_ = kMinPathBytes + kMeanPathBytes * entries_.size();
        visits_left_ = kMoreVisits + kVisitsOfEntry * entries_.size();
    }

    void add(const SearchRoot& root) {
        note_visit();
        if (const auto file = find_file(root.ino)) {
            list_.files_.push_back({root.ino, add_directory(root.path), *file, ""});
            return;
        }
        if (max_depth_ == 0) {
            return;
        }
        const bool needs_slash = !root.path.empty() && !root.path.ends_with('/');
        levels_.push_back(
            {add_directory(root.path + (needs_slash ? "/" : "")), first_of(root.ino), root.ino});
        visited_ = {root.ino};
        archive_path_.clear();
        const std::size_t num_above = rules_.is_used() ? enter_above(root.ino) : 0;
        while (!levels_.empty()) {
            Level& level = levels_.back();
            if (level.entry == entries_.size() || entries_[level.entry].parent != level.parent) {
                leave();
            } else {
                visit(entries_[level.entry++], level.directory);
            }
        }
        for (std::size_t number = 0; number < num_above; ++number) {
            rules_.leave();
        }
    }

    std::vector<std::string> take_warnings() { return rules_.take_warnings(); }

  private:
    struct Level {
        std::uint32_t directory;
        std::size_t entry;  // the next one
        std::uint64_t parent;
        std::size_t path_size = 0;  // of the path in the archive of the directory above
    };

    std::optional<std::string> read_rules(const Read& read, std::uint64_t ino, std::size_t max_size,
                                          std::string& problem) {
        const std::optional<std::uint32_t> file = find_file(ino);
        if (!file) {
            return std::nullopt;
        }
        const Layout& layout = list_.layouts_[*file];
        if (layout.size > max_size) {
            problem = "not used: it is larger than 1 MiB";
            return std::nullopt;
        }
        auto text =
            read(ino, {layout.size,
                       std::span(list_.extents_).subspan(layout.first_extent, layout.num_extents)});
        problem = text ? "" : "not used: it cannot be read";
        return text;
    }

    std::span<const EntryRow> entries_of(std::uint64_t parent) const {
        const std::size_t first = first_of(parent);
        std::size_t end = first;
        while (end < entries_.size() && entries_[end].parent == parent) {
            ++end;
        }
        return entries_.subspan(first, end - first);
    }

    // Enters the directories from the root of the archive to a root of the search, for the rules
    // there. Returns how many of them are above it.
    std::size_t enter_above(std::uint64_t ino) {
        std::vector<const EntryRow*> above;
        for (std::uint64_t child = ino; above.size() <= kMeanPathBytes;) {
            const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                            [&](const EntryRow& row) { return row.ino == child; });
            if (entry == entries_.end()) {
                break;
            }
            above.push_back(&*entry);
            child = entry->parent;
        }
        for (auto entry = above.rbegin(); entry != above.rend(); ++entry) {
            rules_.enter(archive_path_, entries_of((*entry)->parent));
            (archive_path_ += (*entry)->name) += '/';
        }
        rules_.enter(archive_path_, entries_of(ino));
        return above.size();
    }

    void leave() {
        if (rules_.is_used()) {
            rules_.leave();
            archive_path_.resize(levels_.back().path_size);
        }
        levels_.pop_back();
    }

    // Whether ignore rules leave out an entry of the directory that was entered last.
    bool is_ignored(const EntryRow& entry, bool is_directory) {
        if (!rules_.is_used()) {
            return false;
        }
        const std::size_t size = archive_path_.size();
        archive_path_ += entry.name;
        const bool is_ignored = rules_.ignores(archive_path_, is_directory);
        archive_path_.resize(size);
        return is_ignored;
    }

    std::size_t first_of(std::uint64_t parent) const {
        const auto found =
            std::partition_point(entries_.begin(), entries_.end(),
                                 [&](const EntryRow& entry) { return entry.parent < parent; });
        return static_cast<std::size_t>(found - entries_.begin());
    }

    // Most files follow each other in the tree as their numbers do.
    std::optional<std::uint32_t> find_file(std::uint64_t ino) {
        const auto& layouts = list_.layouts_;
        if (next_file_ < layouts.size() && layouts[next_file_].ino == ino) {
            return static_cast<std::uint32_t>(next_file_++);
        }
        const auto found = std::lower_bound(
            layouts.begin(), layouts.end(), ino,
            [](const Layout& layout, std::uint64_t number) { return layout.ino < number; });
        if (found == layouts.end() || found->ino != ino) {
            return std::nullopt;
        }
        next_file_ = static_cast<std::size_t>(found - layouts.begin()) + 1;
        return static_cast<std::uint32_t>(next_file_ - 1);
    }

    std::uint32_t add_directory(std::string path) {
        if (path.size() > path_bytes_left_ || list_.directories_.size() == kMaxDirectories) {
            fail_roots();
        }
        path_bytes_left_ -= path.size();
        list_.directories_.push_back(std::move(path));
        return static_cast<std::uint32_t>(list_.directories_.size() - 1);
    }

    // An index alone cannot exceed this limit: a root visits each entry once.
    void note_visit() {
        if (visits_left_-- == 0) {
            fail_roots();
        }
    }

    void visit(const EntryRow& entry, std::uint32_t directory) {
        note_visit();
        const std::optional<std::uint32_t> file = find_file(entry.ino);
        const std::size_t first = file ? entries_.size() : first_of(entry.ino);
        const bool is_directory = first != entries_.size() && entries_[first].parent == entry.ino;
        if (!file && (!is_directory || levels_.size() >= max_depth_)) {
            return;  // a symlink, a device, an empty directory
        }
        if (!globs_.is_empty() || rules_.is_used()) {
            path_ = list_.directories_[directory];
            path_ += entry.name;
            if (!globs_.includes(path_, is_directory,
                                 [&] { return is_ignored(entry, is_directory); })) {
                return;
            }
        }
        if (file) {
            list_.files_.push_back({entry.ino, directory, *file, entry.name});
            return;
        }
        if (!visited_.insert(entry.ino).second) {
            fail_index_entry();  // a directory has one entry
        }
        std::string path = list_.directories_[directory];
        path += entry.name;
        path += '/';
        levels_.push_back({add_directory(std::move(path)), first, entry.ino, archive_path_.size()});
        if (rules_.is_used()) {
            (archive_path_ += entry.name) += '/';
            rules_.enter(archive_path_, entries_of(entry.ino));
        }
    }

    FileList& list_;
    const PathGlobs globs_;
    const std::uint64_t max_depth_;
    const std::span<const EntryRow> entries_;
    std::size_t next_file_ = 0;  // index of the layout that is probably needed next
    std::uint64_t path_bytes_left_, visits_left_;
    std::unordered_set<std::uint64_t> visited_;  // directories
    std::vector<Level> levels_;
    std::string path_;
    std::string archive_path_;  // of the directory that was entered last, if rules are used
    IgnoreRules rules_;
};

FileList::FileList(const FileRows& rows, const std::vector<SearchRoot>& roots,
                   const ListOptions& options, const Read& read) {
    read_layouts(rows);
    TreeReader reader(*this, rows.entries, options, read);
    for (const SearchRoot& root : roots) {
        reader.add(root);
    }
    warnings_ = reader.take_warnings();
    if (options.sort != "path") {
        sort_by_stream();
    }
}

// Joins the files with their extents. Extents of other inodes are ignored.
void FileList::read_layouts(const FileRows& rows) {
    if (rows.files.size() > ~std::uint32_t{0}) {
        fail_index_entry();
    }
    layouts_.reserve(rows.files.size());
    extents_.reserve(rows.extents.size());
    auto next = rows.extents.begin();
    for (const FileRow& file : rows.files) {
        while (next != rows.extents.end() && next->ino < file.ino) {
            ++next;
        }
        const std::size_t first = extents_.size();
        for (; next != rows.extents.end() && next->ino == file.ino; ++next) {
            append_extent(extents_, first, {next->file_offset, next->stream_offset, next->size});
        }
        layouts_.push_back({file.ino, file.size, first, extents_.size() - first});
    }
}

std::vector<std::uint8_t> FileList::blocks(std::uint64_t num_blocks,
                                           std::uint64_t block_size) const {
    std::vector<std::uint8_t> has_files(num_blocks);
    for (const ListedFile& file : files_) {
        for (const FileExtent& extent : layout(file).extents) {
            const std::uint64_t end = extent.stream_offset + extent.size;
            for (std::uint64_t block = extent.stream_offset / block_size;
                 block < num_blocks && block * block_size < end; ++block) {
                has_files[block] = 1;
            }
        }
    }
    return has_files;
}

void FileList::sort_by_stream() {
    const auto offset_of = [&](const ListedFile& file) {
        const auto extents = layout(file).extents;
        return extents.empty() ? 0 : extents.front().stream_offset;
    };
    std::stable_sort(files_.begin(), files_.end(),
                     [&](const ListedFile& left, const ListedFile& right) {
                         return offset_of(left) < offset_of(right);
                     });
}

}  // namespace gompfs::search

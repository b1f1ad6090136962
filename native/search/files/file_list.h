// The files of an archive that are searched, with their paths and layouts, from rows of the index.
//
// The index is untrusted input: every field is checked; each directory is entered once; and the
// paths of directories, which are stored whole, have a limit. Names and extents are not copied for
// each file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks/file_layouts.h"
#include "index/file_rows.h"
#include "search/files/ignore_rules.h"
#include "search/files/path_globs.h"

namespace gompfs::search {

// Which files are listed, and how. Limits do not apply to files that are roots.
// The options have the names and meanings of ripgrep's; those of gompfs/search/query.py are the
// same.
struct ListOptions {
    std::vector<std::string> glob;
    std::vector<std::string> type_glob;      // of --type and --type-not
    std::optional<std::uint64_t> max_depth;  // 1: only entries of the roots
    bool ignore = false;                     // uses the ignore rules in the archive
    // Names and contents of files that the user names.
    std::vector<std::pair<std::string, std::string>> ignore_file;
    std::string sort = "none";  // or path

    // Calls visit(name, member) for each option.
    template <typename Visit>
    void for_each(const Visit& visit) {
        visit("glob", glob);
        visit("type_glob", type_glob);
        visit("max_depth", max_depth);
        visit("ignore", ignore);
        visit("ignore_file", ignore_file);
        visit("sort", sort);
    }
};

// An entry at which the search begins, and its path as it is printed.
struct SearchRoot {
    std::string path;
    std::uint64_t ino;
};

struct ListedFile {
    std::uint64_t ino;
    std::uint32_t directory;  // index of a path
    std::uint32_t layout;     // index of a layout
    std::string_view name;    // empty if the file is a root

    bool is_root() const { return name.empty(); }
};

class FileList {
  public:
    // Returns the content of a file, or nothing if it cannot be read.
    using Read = std::function<std::optional<std::string>(std::uint64_t ino, LayoutView layout)>;

    // Lists the files at and below the roots: in the order of their bytes in the stream, or of the
    // paths below each root. Throws std::invalid_argument if the index is damaged, and SearchError
    // if there are too many roots for it, or ignore rules take too long. `read` reads ignore files.
    // The rows must outlive the list.
    FileList(const FileRows& rows, const std::vector<SearchRoot>& roots, const ListOptions& options,
             const Read& read);

    // What is wrong with ignore files.
    const std::vector<std::string>& warnings() const { return warnings_; }

    std::size_t size() const { return files_.size(); }
    const ListedFile& operator[](std::size_t index) const { return files_[index]; }
    std::string path(const ListedFile& file) const {
        return directories_[file.directory] + std::string(file.name);
    }
    LayoutView layout(const ListedFile& file) const {
        const Layout& layout = layouts_[file.layout];
        return {layout.size, std::span(extents_).subspan(layout.first_extent, layout.num_extents)};
    }

    // Keeps the files for which keeps(layout) is true. Returns how many files and bytes it dropped.
    template <typename Keep>
    std::pair<std::uint64_t, std::uint64_t> keep_if(const Keep& keep) {
        const std::uint64_t num_files = files_.size();
        std::uint64_t num_bytes = 0;
        std::erase_if(files_, [&](const ListedFile& file) {
            const LayoutView view = layout(file);
            const bool is_dropped = !keep(view);
            num_bytes += is_dropped ? view.size : 0;
            return is_dropped;
        });
        return {num_files - files_.size(), num_bytes};
    }

    // Returns for each block of the stream, of num_blocks, 1 if a file has bytes there, else 0.
    std::vector<std::uint8_t> blocks(std::uint64_t num_blocks, std::uint64_t block_size) const;

  private:
    class TreeReader;
    struct Layout {
        std::uint64_t ino, size;
        std::size_t first_extent, num_extents;
    };

    void read_layouts(const FileRows& rows);

    void sort_by_stream();

    std::vector<std::string> directories_;  // their paths, with a slash at the end
    std::vector<ListedFile> files_;
    std::vector<Layout> layouts_;  // by ino
    std::vector<FileExtent> extents_;
    std::vector<std::string> warnings_;
};

}  // namespace gompfs::search

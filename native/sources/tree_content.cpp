// Walks a tree and reads ranges of its content; see tree_content.h.
//
// Directories are listed level by level, by tasks that the walk waits for in turn. The order of the
// files is found afterwards.
#include "sources/tree_content.h"

#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/read_fully.h"
#include "common/tasks_ahead.h"

namespace gompfs {

// Lists a directory.
class TreeContent::ListTask : public TasksAhead::Task {
  public:
    ListTask(std::string path, bool is_root, std::optional<dev_t> device)
        : path_(std::move(path)), is_root_(is_root), device_(device) {}

    // Once the task is done; no entries if the directory cannot be listed.
    Entries entries;
    dev_t device() const { return listed_device_; }

  private:
    void run(TasksAhead&) override try {
        const LocalDirectory listed = list_directory(AT_FDCWD, path_, is_root_, device_);
        listed_device_ = listed.status.st_dev;
        for (const LocalDirectory::Name& each : listed.names) {
            if (listed.error == 0) {
                add(listed.directory->number(), each);
            }
        }
    } catch (const std::exception&) {
        entries.clear();
    }

    void add(int directory, const LocalDirectory::Name& each) {
        using Kind = LocalDirectory::Kind;
        struct stat status{};
        if (each.kind == Kind::directory) {
            entries.push_back({each.name, true, 0, 0, {}, false});
        } else if (each.kind == Kind::regular &&
                   fstatat(directory, each.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
            entries.push_back({each.name, false, 0, static_cast<std::uint64_t>(status.st_size),
                               InodeNumber(status.st_dev, status.st_ino), status.st_nlink > 1});
        }
    }

    const std::string path_;
    const bool is_root_;
    const std::optional<dev_t> device_;
    dev_t listed_device_ = 0;
};

// Reads a range of a file.
class TreeContent::ReadTask : public TasksAhead::Task {
  public:
    ReadTask(std::string path, std::uint64_t file_offset, std::uint64_t size)
        : path_(std::move(path)), file_offset_(file_offset), size_(size) {}

    std::vector<std::uint8_t> result;  // once the task is done

  private:
    void run(TasksAhead&) override try {
        const LocalFile file = open_file(AT_FDCWD, path_);
        if (file.error == 0 && S_ISREG(file.status.st_mode)) {
            result.resize(size_);
            result.resize(read_fully(file.file.number(), result, file_offset_));
        }
    } catch (const std::exception&) {
        result.clear();
    }

    const std::string path_;
    const std::uint64_t file_offset_, size_;
};

TreeContent::TreeContent(std::string root, const Options& options)
    : root_(std::move(root) + "/"), max_threads_(options.max_threads) {
    std::vector<Directory> directories = walk(options);
    take_files(directories, options.skipped);
}

std::vector<TreeContent::Directory> TreeContent::walk(const Options& options) const {
    std::vector<Directory> directories;
    std::deque<std::shared_ptr<ListTask>> announced;  // of the last directories
    std::optional<dev_t> device;
    TasksAhead tasks({0, max_threads_});
    const auto announce = [&](std::string path) {
        announced.push_back(std::make_shared<ListTask>(root_ + path, directories.empty(), device));
        tasks.push(announced.back());
        directories.push_back({std::move(path), {}});
    };
    announce("");
    for (std::size_t number = 0; !announced.empty(); ++number) {
        const std::shared_ptr<ListTask> task = std::move(announced.front());
        announced.pop_front();
        tasks.wait(*task);
        if (number == 0 && options.one_file_system) {
            device = task->device();
        }
        const std::string path = directories[number].path;
        if (options.filter) {
            options.filter(path, task->entries);
        }
        for (Entry& entry : task->entries) {
            if (entry.is_directory) {
                entry.directory = static_cast<std::uint32_t>(directories.size());
                announce(path + entry.name + "/");
            }
        }
        directories[number].entries = std::move(task->entries);
    }
    return directories;
}

void TreeContent::take_files(std::vector<Directory>& directories,
                             const std::vector<InodeNumber>& skipped) {
    struct Level {
        std::uint32_t directory;
        std::size_t next;  // of its entries
    };
    std::set<InodeNumber> left_out(skipped.begin(), skipped.end());
    std::vector<Level> levels{{0, 0}};
    while (!levels.empty()) {
        Level& level = levels.back();
        Entries& entries = directories[level.directory].entries;
        if (level.next == entries.size()) {
            entries = {};
            levels.pop_back();
            continue;
        }
        Entry& entry = entries[level.next++];
        if (entry.is_directory) {
            levels.push_back({entry.directory, 0});
        } else if (!left_out.contains(entry.inode)) {
            if (entry.has_more_names) {
                left_out.insert(entry.inode);
            }
            files_.push_back({level.directory, std::move(entry.name), size() + entry.size});
        }
    }
    for (Directory& directory : directories) {
        paths_.push_back(std::move(directory.path));
    }
}

std::vector<std::uint8_t> TreeContent::read(std::uint64_t offset, std::uint64_t size) const {
    const std::uint64_t end = offset + size;
    auto file = std::upper_bound(
        files_.begin(), files_.end(), offset,
        [](std::uint64_t position, const File& each) { return position < each.end; });
    std::uint64_t start = file == files_.begin() ? 0 : std::prev(file)->end;
    std::vector<std::shared_ptr<ReadTask>> announced;
    TasksAhead tasks({0, max_threads_});
    for (; start < end; start = file++->end) {
        const std::uint64_t first = std::max(offset, start);
        announced.push_back(std::make_shared<ReadTask>(root_ + paths_[file->directory] + file->name,
                                                       first - start,
                                                       std::min(end, file->end) - first));
        tasks.push(announced.back());
    }
    std::vector<std::uint8_t> content;
    for (const auto& task : announced) {
        tasks.wait(*task);
        content.insert(content.end(), task->result.begin(), task->result.end());
    }
    return content;
}

}  // namespace gompfs

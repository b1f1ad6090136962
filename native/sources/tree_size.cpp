// Walks a tree; see tree_size.h.
//
// Directories are listed level by level, by tasks that the walk waits for in turn.
#include "sources/tree_size.h"

#include <fcntl.h>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/tasks_ahead.h"

namespace gompfs {

namespace {

class ListTask : public TasksAhead::Task {
  public:
    // `root` is the path of the tree, and `path` that of a directory in it; both end with a slash
    // unless they are empty.
    ListTask(const std::string& root, std::string path, bool is_root, std::optional<dev_t> device)
        : path(std::move(path)),
          full_path_(root + this->path),
          is_root_(is_root),
          device_(device) {}

    const std::string path;
    // Once the task is done; no entries if the directory cannot be listed.
    std::vector<TreeEntry> entries;
    dev_t device() const { return listed_device_; }

  private:
    void run(TasksAhead&) override try {
        const LocalDirectory listed = list_directory(AT_FDCWD, full_path_, is_root_, device_);
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
            entries.push_back({each.name, true, 0, {}, false});
        } else if (each.kind == Kind::regular &&
                   fstatat(directory, each.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
            entries.push_back({each.name, false, static_cast<std::uint64_t>(status.st_size),
                               InodeNumber(status.st_dev, status.st_ino), status.st_nlink > 1});
        }
    }

    const std::string full_path_;
    const bool is_root_;
    const std::optional<dev_t> device_;
    dev_t listed_device_ = 0;
};

}  // namespace

std::uint64_t size_of_tree(const std::string& root, const TreeSizeOptions& options) {
    const std::string top = root + "/";
    std::uint64_t size = 0;
    std::set<InodeNumber> left_out(options.skipped.begin(), options.skipped.end());
    std::deque<std::shared_ptr<ListTask>> announced{
        std::make_shared<ListTask>(top, "", true, std::nullopt)};
    std::optional<dev_t> device;
    TasksAhead tasks({0, options.max_threads});
    tasks.push(announced.front());
    for (bool is_root = true; !announced.empty(); is_root = false) {
        const std::shared_ptr<ListTask> task = std::move(announced.front());
        announced.pop_front();
        tasks.wait(*task);
        if (is_root && options.one_file_system) {
            device = task->device();
        }
        if (options.filter) {
            options.filter(task->path, task->entries);
        }
        for (const TreeEntry& entry : task->entries) {
            if (entry.is_directory) {
                announced.push_back(
                    std::make_shared<ListTask>(top, task->path + entry.name + "/", false, device));
                tasks.push(announced.back());
            } else if (!left_out.contains(entry.inode)) {
                if (entry.has_more_names) {
                    left_out.insert(entry.inode);
                }
                size += entry.size;
            }
        }
    }
    return size;
}

}  // namespace gompfs

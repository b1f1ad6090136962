// Opens, reads and lists local files ahead of a thread that walks a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/tasks_ahead.h"
#include "sources/local_files.h"

namespace gompfs {

// A file of a directory. Larger files than max_size are only opened, as are those that have not
// changed since `archived`, if it is given.
class FileTask : public TasksAhead::Task {
  public:
    FileTask(std::shared_ptr<Descriptor> directory, std::string name, std::uint64_t max_size,
             std::optional<ArchivedFile> archived)
        : directory_(std::move(directory)),
          name_(std::move(name)),
          max_size_(max_size),
          archived_(archived) {}

    const std::string& name() const { return name_; }

    LocalFile result;  // once the task is done

  private:
    void run(TasksAhead& tasks) override;

    std::shared_ptr<Descriptor> directory_;
    const std::string name_;
    const std::uint64_t max_size_;
    const std::optional<ArchivedFile> archived_;
};

// A directory of a directory, or of the current one if the parent is null. With `device`, a
// directory of another file system counts as empty.
class DirectoryTask : public TasksAhead::Task {
  public:
    DirectoryTask(std::shared_ptr<Descriptor> parent, std::string name, std::optional<dev_t> device)
        : parent_(std::move(parent)), name_(std::move(name)), device_(device) {}

    LocalDirectory result;  // once the task is done

  private:
    void run(TasksAhead& tasks) override;

    std::shared_ptr<Descriptor> parent_;
    const std::string name_;
    const std::optional<dev_t> device_;
};

}  // namespace gompfs

// Reads a file of an archive before it is needed.
#pragma once

#include <cstdint>
#include <memory>

#include "blocks/block_reader.h"
#include "common/file_content.h"
#include "common/tasks_ahead.h"

namespace gompfs {

class ContentTask : public TasksAhead::Task {
  public:
    // `reader` must outlive the task.
    ContentTask(BlockReader& reader, std::uint64_t ino, std::uint64_t size)
        : reader_(reader), ino_(ino), size_(size) {}

    // Once the task is done: null if the file cannot be read, or has fewer bytes. Reading it again
    // tells why.
    std::shared_ptr<FileContent> result;

  private:
    void run(TasksAhead& tasks) override;

    BlockReader& reader_;
    const std::uint64_t ino_, size_;
};

}  // namespace gompfs

// Reads a file of an archive, or a range of one, before it is needed.
#pragma once

#include <cstdint>
#include <memory>

#include "blocks/block_reader.h"
#include "common/file_content.h"
#include "common/tasks_ahead.h"

namespace gompfs {

class ContentTask : public TasksAhead::Task {
  public:
    struct Range {
        std::uint64_t file_offset, size;
        bool is_whole_file;  // then its content is examined
    };

    // `reader` must outlive the task.
    ContentTask(BlockReader& reader, std::uint64_t ino, const Range& range)
        : reader_(reader), ino_(ino), range_(range) {}

    // Once the task is done: null if the range cannot be read, or is not all in the file. Reading
    // it again tells why.
    std::shared_ptr<FileContent> result;

  private:
    void run(TasksAhead& tasks) override;

    BlockReader& reader_;
    const std::uint64_t ino_;
    const Range range_;
};

}  // namespace gompfs

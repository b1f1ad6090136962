// Opens, reads and lists local files; see file_loader.h.
#include "sources/file_loader.h"

#include <fcntl.h>

#include <cerrno>
#include <exception>

namespace gompfs {

void FileTask::run(TasksAhead& tasks) try {
    result = open_file(directory_->number(), name_);
    directory_.reset();
    if (archived_ && take_unchanged(result, *archived_)) {
        return;
    }
    if (!can_be_read_whole(result, max_size_)) {
        return;
    }
    const auto size = static_cast<std::uint64_t>(result.status.st_size);
    if (TasksAhead::Held space = tasks.take_space(*this, size)) {
        read_file(result);
        if (result.content) {
            result.content = with_space(std::move(result.content), std::move(space));
        }
    }
} catch (const std::exception&) {
    result.error = ENOMEM;
}

void DirectoryTask::run(TasksAhead&) try {
    result =
        list_directory(parent_ ? parent_->number() : AT_FDCWD, name_, parent_ == nullptr, device_);
    parent_.reset();
} catch (const std::exception&) {
    result.error = ENOMEM;
}

}  // namespace gompfs

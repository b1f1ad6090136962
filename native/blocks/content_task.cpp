// Reads a file of an archive; see content_task.h.
#include "blocks/content_task.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace gompfs {

void ContentTask::run(TasksAhead& tasks) try {
    TasksAhead::Held space = tasks.take_space(*this, size_);
    ReadPieces pieces;
    if (!space || (size_ != 0 && !reader_.read(ino_, 0, size_, pieces)) || pieces.size != size_) {
        return;
    }
    auto content = std::make_shared<FileContent>();
    content->bytes.resize(size_);
    auto end = content->bytes.begin();
    for (const iovec& piece : pieces.pieces) {
        const auto* const bytes = static_cast<const std::uint8_t*>(piece.iov_base);
        end = std::copy_n(bytes, piece.iov_len, end);
    }
    content->examine();
    result = with_space(std::move(content), std::move(space));
} catch (const std::exception&) {
    result.reset();
}

}  // namespace gompfs

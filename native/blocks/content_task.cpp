// Reads a range of a file of an archive; see content_task.h.
#include "blocks/content_task.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace gompfs {

void ContentTask::run(TasksAhead& tasks) try {
    const auto [file_offset, size, is_whole_file] = range_;
    TasksAhead::Held space = tasks.take_space(*this, size);
    ReadPieces pieces;
    if (!space || (size != 0 && !reader_.read(ino_, file_offset, size, pieces)) ||
        pieces.size != size) {
        return;
    }
    auto content = std::make_shared<FileContent>();
    content->bytes.resize(size);
    auto end = content->bytes.begin();
    for (const iovec& piece : pieces.pieces) {
        const auto* const bytes = static_cast<const std::uint8_t*>(piece.iov_base);
        end = std::copy_n(bytes, piece.iov_len, end);
    }
    if (is_whole_file) {
        content->examine();
    }
    result = with_space(std::move(content), std::move(space));
} catch (const std::exception&) {
    result.reset();
}

}  // namespace gompfs

// Combines the two kinds of readers; see read_ahead.h.
#include "blocks/read_ahead.h"

#include <utility>

namespace gompfs {

void ReadAhead::set_capacity(std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    sequential_.set_capacity(capacity);
    strided_.set_capacity(capacity);
}

std::int64_t ReadAhead::note(const StreamRead& read, std::uint64_t max_ahead) {
    const std::lock_guard lock(mutex_);
    if (wanted_.is_closed()) {
        return 0;
    }
    const BlockRange blocks{read.stream_offset / block_size_,
                            (read.stream_offset + read.size - 1) / block_size_ + 1};
    std::vector<std::uint64_t> wanted;
    std::int64_t ahead = sequential_.note(blocks, max_ahead, wanted);
    // Tried only if the read is not sequential: several threads that read parts of a file in turn
    // would look strided, too.
    if (ahead == 0 && strided_.note(read, max_ahead, wanted)) {
        ahead = static_cast<std::int64_t>(blocks.end - blocks.first);
    }
    if (!wanted.empty()) {
        wanted_.push(std::move(wanted));
    }
    return ahead;
}

}  // namespace gompfs

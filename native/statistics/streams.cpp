// Implements streams; see streams.h. A writer has an open chunk per stream. The order of a chunk is
// the writer's number in the high bits and a counter in the low bits, so the result does not depend
// on timing.
#include "statistics/streams.h"

#include <algorithm>

namespace gompfs {

void Streams::Writer::put_aside(std::size_t stream) {
    Open& open = open_[stream];
    if (!open.bytes.empty()) {
        const Chunk chunk{next_order_++, streams_.spill_.append(open.bytes),
                          static_cast<std::uint32_t>(open.bytes.size())};
        const std::lock_guard lock(streams_.mutex_);
        streams_.chunks_[stream].push_back(chunk);
    }
    open.bytes.clear();
    open.last = 0;
}

void Streams::Writer::finish() {
    for (std::size_t stream = 0; stream < open_.size(); ++stream) {
        put_aside(stream);
    }
}

std::vector<Streams::Chunk> Streams::chunks(std::size_t stream) const {
    std::vector<Chunk> sorted = chunks_[stream];
    std::sort(sorted.begin(), sorted.end(),
              [](const Chunk& left, const Chunk& right) { return left.order < right.order; });
    return sorted;
}

}  // namespace gompfs

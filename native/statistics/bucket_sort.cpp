// Implements the bucket sort; see bucket_sort.h. A writer has an open chunk per bucket. The order
// of a chunk is the writer's number in the high bits and a counter in the low bits, so the result
// does not depend on timing.
#include "statistics/bucket_sort.h"

#include <algorithm>

namespace gompfs {

void BucketSort::Writer::spill_chunk(std::size_t bucket) {
    Open& open = open_[bucket];
    if (!open.bytes.empty()) {
        const Chunk chunk{next_order_++, sort_.spill_.append(open.bytes),
                          static_cast<std::uint32_t>(open.bytes.size())};
        const std::lock_guard lock(sort_.mutex_);
        sort_.chunks_[bucket].push_back(chunk);
    }
    open.bytes.clear();
    open.last = 0;
}

void BucketSort::Writer::finish() {
    for (std::size_t bucket = 0; bucket < open_.size(); ++bucket) {
        spill_chunk(bucket);
    }
}

std::vector<BucketSort::Chunk> BucketSort::chunks(std::size_t bucket) const {
    std::vector<Chunk> sorted = chunks_[bucket];
    std::sort(sorted.begin(), sorted.end(),
              [](const Chunk& left, const Chunk& right) { return left.order < right.order; });
    return sorted;
}

}  // namespace gompfs

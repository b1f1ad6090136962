#include "reading/sequential_readers.h"

#include <algorithm>

namespace gompfs {

namespace {

constexpr std::size_t kMaxReaders = 16;
constexpr std::uint64_t kFirstAhead = 4;

}  // namespace

std::uint64_t SequentialReaders::note(std::uint64_t first, std::uint64_t count,
                                      std::uint64_t max_ahead) {
    const std::uint64_t end = first + count;
    const std::lock_guard lock(mutex_);
    if (closed_) {
        return 0;
    }
    Reader reader = take(first, end);
    if (end > reader.next_block) {
        const std::uint64_t fair = capacity_ / (2 * (readers_.size() + 1));
        reader.ahead = std::min(std::max(2 * reader.ahead, kFirstAhead), std::min(max_ahead, fair));
    }
    reader.next_block = end;
    const std::uint64_t target = std::min(end + reader.ahead, num_blocks_);
    reader.requested_end = std::max(reader.requested_end, end);
    if (target >= reader.requested_end + std::max<std::uint64_t>(reader.ahead / 2, 1)) {
        wanted_.push_back({reader.requested_end, target});
        reader.requested_end = target;
        if (wanted_.size() > kMaxReaders) {
            wanted_.pop_front();  // it was read by now, or somebody has waited too long
        }
        wanted_some_.notify_one();
    }
    readers_.push_back(reader);
    if (readers_.size() > kMaxReaders) {
        readers_.pop_front();
    }
    return reader.ahead;
}

// The reader who goes on here, or in the block that it has read a part of; else a new one.
SequentialReaders::Reader SequentialReaders::take(std::uint64_t first, std::uint64_t end) {
    for (const std::uint64_t next : {first, first + 1}) {
        const auto found =
            std::find_if(readers_.begin(), readers_.end(),
                         [&](const Reader& reader) { return reader.next_block == next; });
        if (found != readers_.end()) {
            const Reader reader = *found;
            readers_.erase(found);
            return reader;
        }
    }
    return {end, 0, end};
}

std::optional<BlockRange> SequentialReaders::wait() {
    std::unique_lock lock(mutex_);
    wanted_some_.wait(lock, [this] { return closed_ || !wanted_.empty(); });
    if (closed_) {
        return std::nullopt;
    }
    const BlockRange range = wanted_.front();
    wanted_.pop_front();
    return range;
}

void SequentialReaders::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    wanted_some_.notify_all();
}

}  // namespace gompfs

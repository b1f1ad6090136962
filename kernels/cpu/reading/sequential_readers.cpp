#include "reading/sequential_readers.h"

#include <algorithm>
#include <numeric>

namespace gompfs {

namespace {

constexpr std::size_t kMaxReaders = 16;
constexpr std::uint64_t kFirstAhead = 4;

// Whether somebody who read `last` goes on with `next`. The block that was read in part may be read
// again.
bool goes_on(const BlockRange& last, const BlockRange& next, bool backwards) {
    const std::uint64_t low_end = backwards ? next.end : last.end;
    const std::uint64_t high_first = backwards ? last.first : next.first;
    return low_end == high_first || low_end == high_first + 1;
}

}  // namespace

std::int64_t SequentialReaders::note(const BlockRange& range, std::uint64_t max_ahead,
                                     std::vector<std::uint64_t>& wanted) {
    Reader reader = take(range);
    if (reader.backwards ? range.first < reader.last.first : range.end > reader.last.end) {
        const std::uint64_t fair = capacity_ / (2 * (readers_.size() + 1));
        reader.ahead = std::min(std::max(2 * reader.ahead, kFirstAhead), std::min(max_ahead, fair));
    }
    reader.last = range;
    want(reader, wanted);
    readers_.push_back(reader);
    if (readers_.size() > kMaxReaders) {
        readers_.pop_front();
    }
    const auto ahead = static_cast<std::int64_t>(reader.ahead);
    return reader.backwards ? -ahead : ahead;
}

// The reader who goes on here, or else turns round here; else a new one.
SequentialReaders::Reader SequentialReaders::take(const BlockRange& range) {
    for (const bool turns : {false, true}) {
        const auto found =
            std::find_if(readers_.begin(), readers_.end(), [&](const Reader& reader) {
                return goes_on(reader.last, range, reader.backwards != turns);
            });
        if (found == readers_.end()) {
            continue;
        }
        Reader reader = *found;
        readers_.erase(found);
        if (turns) {
            const bool backwards = !reader.backwards;
            reader = {reader.last, backwards, 0, backwards ? range.first : range.end};
        }
        return reader;
    }
    return {range, false, 0, range.end};
}

// Asks for what the reader will come to, once it is half as much as it may be, or all that is left.
void SequentialReaders::want(Reader& reader, std::vector<std::uint64_t>& wanted) const {
    BlockRange range{};
    if (reader.backwards) {
        reader.requested = std::min(reader.requested, reader.last.first);
        range = {reader.last.first - std::min(reader.ahead, reader.last.first), reader.requested};
    } else {
        reader.requested = std::max(reader.requested, reader.last.end);
        range = {reader.requested, std::min(reader.last.end + reader.ahead, num_blocks_)};
    }
    const bool is_rest = reader.backwards ? range.first == 0 : range.end == num_blocks_;
    const std::uint64_t least = is_rest ? 1 : std::max<std::uint64_t>(reader.ahead / 2, 1);
    if (range.end < range.first + least) {
        return;
    }
    reader.requested = reader.backwards ? range.first : range.end;
    wanted.resize(range.end - range.first);
    std::iota(wanted.begin(), wanted.end(), range.first);
}

}  // namespace gompfs

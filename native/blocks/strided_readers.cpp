// Implements the recognition of strided readers; see strided_readers.h.
//
// The predicted offset is last + (last - first) * steps / num_steps: the mean distance of all steps
// so far, so that rounding to pages does not add up. Read-ahead starts with 4 reads and doubles up
// to 32, and never takes more than 1/32 of the cache (half the cache, shared by 16 readers).
#include "blocks/strided_readers.h"

#include <algorithm>
#include <cstdlib>

namespace gompfs {

namespace {

constexpr std::size_t kMaxReaders = 16;
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kFirstAhead = 4;
constexpr std::int64_t kMostAhead = 32;  // in reads

}  // namespace

StridedReaders::StridedReaders(std::uint64_t num_blocks, std::uint64_t block_size,
                               std::uint64_t capacity)
    : num_blocks_(num_blocks), block_size_(block_size) {
    set_capacity(capacity);
}

void StridedReaders::set_capacity(std::uint64_t capacity) { fair_ = capacity / (2 * kMaxReaders); }

bool StridedReaders::note(const StreamRead& read, std::uint64_t max_ahead,
                          std::vector<std::uint64_t>& wanted) {
    Reader reader = take(read);
    if (reader.is_strided()) {
        want(reader, read.size, std::min(max_ahead, fair_), wanted);
    }
    keep(reader);
    return reader.is_strided();
}

// Finds the reader that was predicted to read here, or else a reader of this file whose distance is
// not known yet. Otherwise starts a new one.
StridedReaders::Reader StridedReaders::take(const StreamRead& read) {
    const auto position = static_cast<std::int64_t>(read.stream_offset);
    const auto least_distance = static_cast<std::int64_t>(read.size + block_size_);
    const auto is_expected = [&](const Reader& reader) {
        return reader.node == read.node && reader.num_steps > 0 &&
               std::abs(reader.after(1) - position) <= kPage &&
               std::abs(position - reader.last) >= least_distance;
    };
    const auto is_new = [&](const Reader& reader) {
        return reader.node == read.node && !reader.is_strided();
    };
    auto found = std::find_if(readers_.begin(), readers_.end(), is_expected);
    const bool goes_on = found != readers_.end();
    if (!goes_on) {
        found = std::find_if(readers_.begin(), readers_.end(), is_new);
    }
    if (found == readers_.end()) {
        return {read.node, position, position, 0, 0, 0};
    }
    Reader reader = *found;
    readers_.erase(found);
    if (!goes_on) {
        return {read.node, reader.last, position, 1, 0, 0};
    }
    reader.last = position;
    ++reader.num_steps;
    reader.requested = std::max<std::int64_t>(reader.requested - 1, 0);
    return reader;
}

// Adds a reader. If there are too many, drops the oldest reader that is not strided, or else the
// oldest.
void StridedReaders::keep(const Reader& reader) {
    if (readers_.size() == kMaxReaders) {
        const auto unsure = std::find_if(readers_.begin(), readers_.end(),
                                         [](const Reader& kept) { return !kept.is_strided(); });
        readers_.erase(unsure == readers_.end() ? readers_.begin() : unsure);
    }
    readers_.push_back(reader);
}

// Requests the blocks of the reader's next reads, once half of those requested before are used up.
void StridedReaders::want(Reader& reader, std::uint64_t size, std::uint64_t max_ahead,
                          std::vector<std::uint64_t>& wanted) const {
    if (2 * reader.requested > reader.ahead) {
        return;
    }
    const auto blocks_of_a_read = static_cast<std::int64_t>(size / block_size_ + 1);
    reader.ahead = std::min({std::max(2 * reader.ahead, kFirstAhead), kMostAhead,
                             static_cast<std::int64_t>(max_ahead) / blocks_of_a_read});
    for (; reader.requested < reader.ahead; ++reader.requested) {
        const std::int64_t begin = reader.after(reader.requested + 1);
        if (begin < 0) {
            continue;
        }
        const auto first = static_cast<std::uint64_t>(begin);
        const std::uint64_t end = std::min((first + size - 1) / block_size_ + 1, num_blocks_);
        for (std::uint64_t number = first / block_size_; number < end; ++number) {
            wanted.push_back(number);
        }
    }
}

}  // namespace gompfs

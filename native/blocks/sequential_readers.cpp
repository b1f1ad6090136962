// Implements the recognition of sequential readers; see sequential_readers.h.
//
// The amount decoded ahead starts with 4 blocks and doubles with each read that goes on, up to
// max_ahead and to a reader's share of half the cache. Readers that did not read lately have no
// share, and neither do those that did not go on: they have ended, or were never there, since
// requests that arrive out of order look like several readers. New blocks are requested only when
// at least half of that amount is missing, so that they are decoded in large batches. A reader that
// turns around starts again with 0 blocks ahead.
#include "blocks/sequential_readers.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gompfs {

namespace {

constexpr std::size_t kMaxReaders = 16;
constexpr std::uint64_t kFirstAhead = 4;
constexpr std::size_t kMaxSkipped = 8;
constexpr std::uint64_t kLately = 64;   // reads
constexpr std::uint64_t kFewSteps = 4;  // a reader that went on less often has no share

// Whether a reader that read `last` continues with `next`. A block that was read in part may be
// read again.
bool goes_on(const BlockRange& last, const BlockRange& next, bool backwards) {
    const std::uint64_t low_end = backwards ? next.end : last.end;
    const std::uint64_t high_first = backwards ? last.first : next.first;
    return low_end == high_first || low_end == high_first + 1;
}

}  // namespace

std::int64_t SequentialReaders::note(const BlockRange& range, std::uint64_t max_ahead,
                                     std::vector<std::uint64_t>& wanted) {
    Reader reader = take(range);
    reader.time = ++time_;
    const std::uint64_t most = std::min(max_ahead, share());
    if (reader.backwards ? range.first < reader.last.first : range.end > reader.last.end) {
        reader.ahead = std::max(2 * reader.ahead, kFirstAhead);
        ++reader.num_steps;
    }
    reader.ahead = std::min(reader.ahead, most);
    if (reader.has_skipped(range)) {
        reader.read_skipped(range);
    } else {
        reader.go_on(range);
    }
    want(reader, wanted);
    const auto ahead = static_cast<std::int64_t>(reader.ahead);
    const bool backwards = reader.backwards;
    readers_.push_back(std::move(reader));
    if (readers_.size() > kMaxReaders) {
        readers_.pop_front();
    }
    return backwards ? -ahead : ahead;
}

// Returns how many blocks of the cache one more reader may have, beside those that read lately.
std::uint64_t SequentialReaders::share() const {
    const auto is_active = [&](const Reader& reader) {
        return reader.time + kLately >= time_ && reader.num_steps >= kFewSteps;
    };
    const auto num_others = std::count_if(readers_.begin(), readers_.end(), is_active);
    return capacity_ / (2 * (static_cast<std::uint64_t>(num_others) + 1));
}

// Finds the reader that this range continues: directly, or leaving a gap that may be read later, or
// after a change of direction. Otherwise starts a new one.
SequentialReaders::Reader SequentialReaders::take(const BlockRange& range) {
    if (auto found = take_if([&](const Reader& reader) {
            return goes_on(reader.last, range, reader.backwards) || reader.has_skipped(range);
        })) {
        return *found;
    }
    if (auto found = take_if([&](const Reader& reader) { return reader.skips_to(range); })) {
        found->skipped.push_back(found->backwards ? BlockRange{range.end, found->last.first}
                                                  : BlockRange{found->last.end, range.first});
        return *found;
    }
    if (auto found = take_if(
            [&](const Reader& reader) { return goes_on(reader.last, range, !reader.backwards); })) {
        const bool backwards = !found->backwards;
        return {found->last, 0, 0, backwards, 0, backwards ? range.first : range.end, {}};
    }
    return {range, 0, 0, false, 0, range.end, {}};
}

template <typename Predicate>
std::optional<SequentialReaders::Reader> SequentialReaders::take_if(Predicate&& predicate) {
    const auto found = std::find_if(readers_.begin(), readers_.end(), predicate);
    if (found == readers_.end()) {
        return std::nullopt;
    }
    Reader reader = std::move(*found);
    readers_.erase(found);
    return reader;
}

// Whether the range lies in a gap, except for a block at either end that another read may have
// covered in part.
bool SequentialReaders::Reader::has_skipped(const BlockRange& range) const {
    return std::any_of(skipped.begin(), skipped.end(), [&](const BlockRange& gap) {
        return range.first < gap.end && gap.first < range.end && range.first + 1 >= gap.first &&
               range.end <= gap.end + 1;
    });
}

// Whether the range was requested for this reader but is not the next one. Returns false for a
// reader with many gaps: that is another kind of reader.
bool SequentialReaders::Reader::skips_to(const BlockRange& range) const {
    return skipped.size() < kMaxSkipped &&
           (backwards ? range.end < last.first && range.end > requested
                      : range.first > last.end && range.first < requested);
}

void SequentialReaders::Reader::read_skipped(const BlockRange& range) {
    std::vector<BlockRange> rest;
    for (const BlockRange& gap : skipped) {
        for (const BlockRange& piece : {BlockRange{gap.first, std::min(gap.end, range.first)},
                                        BlockRange{std::max(gap.first, range.end), gap.end}}) {
            if (piece.first < piece.end) {
                rest.push_back(piece);
            }
        }
    }
    skipped = std::move(rest);
}

// Moves to the range, and forgets gaps that are too far away to be read any more.
void SequentialReaders::Reader::go_on(const BlockRange& range) {
    last = range;
    std::erase_if(skipped, [&](const BlockRange& gap) {
        return gap.end + ahead < last.first || last.end + ahead < gap.first;
    });
}

// Requests the next blocks, once at least half of the amount to decode ahead is missing, or if they
// are the last ones.
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

// Implements decoding from a local archive; see block_source.h.
//
// A "run" is a range of blocks that lie next to each other in the archive (neighbours); it is read
// into a buffer of the thread with one system call. load() claims the blocks of a run in the cache
// before it decodes them, and gives the claims back if it fails, so that another thread can try
// again. A block that is cut off by the end of the file counts as damaged.
#include "blocks/block_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "blocks/claims.h"
#include "codec/block.h"
#include "common/read_fully.h"
#include "shared/format_constants.h"

namespace gompfs {

namespace {

// Reports a batch of decoding work as running for as long as this object lives.
class Batch {
  public:
    explicit Batch(DecodeWork& work) : work_(work) { work_.begin(); }
    ~Batch() { work_.end(num_blocks, num_bytes); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    std::uint64_t num_blocks = 0;
    std::uint64_t num_bytes = 0;

  private:
    DecodeWork& work_;
};

}  // namespace

BlockSource::~BlockSource() { ::close(descriptor_); }

std::vector<LoadedBlock> BlockSource::load(BlockCache& cache, std::uint64_t first,
                                           std::uint64_t end) {
    std::vector<Position> positions = neighbours(first, end);
    std::vector<LoadedBlock> blocks;
    blocks.reserve(positions.size());
    Claims claims(cache);
    while (claims.numbers().size() < positions.size() &&
           claims.claim(first + claims.numbers().size())) {
    }
    positions.resize(claims.numbers().size());
    if (positions.empty()) {
        return blocks;
    }
    Batch batch(*work_);
    const Bytes run = read_run(positions);
    for (std::size_t index = 0; index < positions.size(); ++index) {
        const Position& position = positions[index];
        BlockCache::Block block = cache.make();
        const BlockStatus status = decode(first + index, block_of(run, position, positions[0]),
                                          block->resize(position.uncompressed_size));
        if (status != BlockStatus::ok) {
            block = nullptr;
        }
        batch.num_blocks += block != nullptr;
        batch.num_bytes += block ? position.uncompressed_size : 0;
        claims.settle(index, block);
        blocks.push_back({std::move(block), status});
    }
    return blocks;
}

ReadFailure BlockSource::decode_into(std::uint64_t stream_offset, MutableBytes out) const {
    Batch batch(*work_);
    const std::uint64_t stream_end = stream_offset + out.size();
    const std::uint64_t end = (stream_end + block_size_ - 1) / block_size_;
    std::uint64_t number = stream_offset / block_size_;
    while (number < end) {
        const std::vector<Position> positions = neighbours(number, end);
        const Bytes run = read_run(positions);
        for (const Position& position : positions) {
            const std::uint64_t begin = number++ * block_size_;
            const Bytes block = block_of(run, position, positions[0]);
            if (std::min(begin + block_size_, stream_end) > begin + position.uncompressed_size) {
                return {.reason = ReadFailure::Reason::outside_segment};
            }
            BlockStatus status;
            if (begin >= stream_offset && begin + position.uncompressed_size <= stream_end) {
                const auto target = out.subspan(begin - stream_offset, position.uncompressed_size);
                status = decode(number - 1, block, target);
            } else {
                status = decode_part_into(number - 1, position, block, stream_offset, out);
            }
            if (status != BlockStatus::ok) {
                return {ReadFailure::Reason::damaged_block, number - 1, status};
            }
            ++batch.num_blocks;
            batch.num_bytes += position.uncompressed_size;
        }
    }
    return {};
}

ReadFailure BlockSource::decode_each(
    std::span<const std::uint64_t> numbers,
    const std::function<MutableBytes(std::size_t index, std::size_t size)>& memory_for,
    const std::function<ReadFailure(std::size_t index, Bytes content)>& done) const {
    Batch batch(*work_);
    for (std::size_t index = 0; index < numbers.size();) {
        std::size_t end = index + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
            ++end;
        }
        const std::vector<Position> positions = neighbours(numbers[index], numbers[end - 1] + 1);
        const Bytes run = read_run(positions);
        for (const Position& position : positions) {
            const MutableBytes content = memory_for(index, position.uncompressed_size);
            const BlockStatus status =
                decode(numbers[index], block_of(run, position, positions[0]), content);
            if (status != BlockStatus::ok) {
                return {ReadFailure::Reason::damaged_block, numbers[index], status};
            }
            if (const ReadFailure failure = done(index, content)) {
                return failure;
            }
            ++index;
            ++batch.num_blocks;
            batch.num_bytes += position.uncompressed_size;
        }
    }
    return {};
}

bool BlockSource::for_each_stored(
    std::uint64_t first, std::uint64_t end,
    const std::function<bool(Bytes block, std::uint32_t uncompressed_size, bool is_last)>& take)
    const {
    if (segments_.empty() || end > segments_.back().end_block()) {
        return false;
    }
    while (first < end) {
        const std::vector<Position> positions = neighbours(first, end);
        const Bytes run = read_run(positions);
        for (const Position& position : positions) {
            ++first;
            if (!take(block_of(run, position, positions[0]), position.uncompressed_size,
                      first == end)) {
                return false;
            }
        }
    }
    return true;
}

// Decodes a block into temporary memory, and copies the part that belongs to `out`.
BlockStatus BlockSource::decode_part_into(std::uint64_t number, const Position& position,
                                          Bytes block, std::uint64_t stream_offset,
                                          MutableBytes out) const {
    std::vector<std::uint8_t> content(position.uncompressed_size);
    if (const BlockStatus status = decode(number, block, content); status != BlockStatus::ok) {
        return status;
    }
    const std::uint64_t begin = number * block_size_;
    const std::uint64_t from = std::max(begin, stream_offset);
    const std::uint64_t to = std::min(begin + block_size_, stream_offset + out.size());
    std::copy_n(content.begin() + (from - begin), to - from, out.begin() + (from - stream_offset));
    return BlockStatus::ok;
}

BlockStatus BlockSource::decode(std::uint64_t number, Bytes block, MutableBytes content) const {
    const auto header = parse_block_header(block);
    if (!header || header->uncompressed_size != content.size()) {
        return BlockStatus::bad_header;
    }
    const PartHeads::Opened head = heads_->open(number);
    return head.status == BlockStatus::ok
               ? decode_block(*header, block, verify_, content, head.symbols.get())
               : head.status;
}

BlockSource::Position BlockSource::position_of(std::uint64_t number) const {
    const auto segment = std::prev(std::upper_bound(
        segments_.begin(), segments_.end(), number,
        [](std::uint64_t value, const StoredSegment& each) { return value < each.first_block; }));
    const std::uint64_t index = number - segment->first_block;
    return {segment->archive_offsets[index], segment->compressed_sizes[index],
            segment->uncompressed_sizes[index]};
}

// The blocks from `first` on that lie next to each other in the archive.
std::vector<BlockSource::Position> BlockSource::neighbours(std::uint64_t first,
                                                           std::uint64_t end) const {
    std::vector<Position> positions;
    const std::uint64_t limit = std::min(end, first + max_run());
    for (std::uint64_t number = first; number < limit; ++number) {
        const Position position = position_of(number);
        if (!positions.empty()) {
            const Position& last = positions.back();
            const std::uint64_t last_end = last.archive_offset + last.compressed_size;
            const std::uint64_t run_end = position.archive_offset + position.compressed_size;
            if (position.archive_offset < last_end ||
                position.archive_offset > last_end + kBlockHeaderSize ||
                run_end - positions[0].archive_offset > 2 * kRunBytes) {
                break;
            }
        }
        positions.push_back(position);
    }
    return positions;
}

void BlockSource::announce_head(std::uint64_t number) const {
    const PartHeads::Range head = heads_->unread_head(number);
    if (head.size != 0) {
        posix_fadvise(descriptor_, static_cast<off_t>(head.archive_offset),
                      static_cast<off_t>(head.size), POSIX_FADV_WILLNEED);
    }
}

// Reads the compressed bytes of neighbouring blocks. The result is valid until the same thread
// calls this again, and is shorter if the file ends early.
Bytes BlockSource::read_run(const std::vector<Position>& positions) const {
    thread_local std::vector<std::uint8_t> buffer;
    const std::uint64_t begin = positions.front().archive_offset;
    const std::size_t size =
        positions.back().archive_offset + positions.back().compressed_size - begin;
    buffer.resize(std::max(buffer.size(), size));
    const std::span<std::uint8_t> run = std::span(buffer).first(size);
    return run.first(read_fully(descriptor_, run, begin));
}

// The bytes of one block in a run that begins with block `first`; shorter if the run ends early.
Bytes BlockSource::block_of(Bytes run, const Position& position, const Position& first) {
    const Bytes rest =
        run.subspan(std::min(run.size(), position.archive_offset - first.archive_offset));
    return rest.first(std::min<std::size_t>(rest.size(), position.compressed_size));
}

}  // namespace gompfs

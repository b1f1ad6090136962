#include "reading/block_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "codec/block.h"
#include "format_constants.h"

namespace gompfs {

namespace {

// Blocks that are to be decoded, and that others may have again where this one fails.
class Claims {
  public:
    Claims(BlockCache& cache, std::uint64_t first, std::size_t count)
        : cache_(cache), next_(first), end_(first + count) {}
    ~Claims() {
        while (next_ != end_) {
            settle(nullptr);
        }
    }
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;

    // What became of the next block.
    void settle(const BlockCache::Block& block) {
        if (block) {
            cache_.insert(next_++, block);
        } else {
            cache_.give_up(next_++);
        }
    }

  private:
    BlockCache& cache_;
    std::uint64_t next_;
    const std::uint64_t end_;
};

// A batch that is at work as long as this lives.
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

std::size_t read_fully(int descriptor, std::span<std::uint8_t> out, std::uint64_t offset) {
    std::size_t size = 0;
    while (size < out.size()) {
        const ssize_t count = ::pread(descriptor, out.data() + size, out.size() - size,
                                      static_cast<off_t>(offset + size));
        if (count > 0) {
            size += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            break;  // whoever asks for these blocks again is told why
        }
    }
    return size;
}

}  // namespace

BlockSource::~BlockSource() { ::close(descriptor_); }

std::vector<BlockCache::Block> BlockSource::load(BlockCache& cache, std::uint64_t first,
                                                 std::uint64_t end) {
    const std::vector<Place> places = claim(cache, first, end);
    std::vector<BlockCache::Block> blocks;
    if (places.empty()) {
        return blocks;
    }
    Claims claims(cache, first, places.size());
    Batch batch(*work_);
    std::span<const std::uint8_t> run = read_run(places);
    for (const Place& place : places) {
        const auto gap = std::min(run.size(), place.archive_offset - places[0].archive_offset);
        const auto bytes =
            run.subspan(gap).first(std::min<std::size_t>(run.size() - gap, place.compressed_size));
        const auto header = parse_block_header(bytes);
        BlockCache::Block block;
        if (header && header->uncompressed_size == place.uncompressed_size) {
            block = cache.make();
            if (decode_block(*header, bytes, verify_, block->resize(place.uncompressed_size)) !=
                BlockStatus::ok) {
                block = nullptr;
            }
        }
        batch.num_blocks += block != nullptr;
        batch.num_bytes += block ? place.uncompressed_size : 0;
        claims.settle(block);
        blocks.push_back(std::move(block));
    }
    return blocks;
}

BlockSource::Place BlockSource::place_of(std::uint64_t number) const {
    const auto segment = std::prev(std::upper_bound(
        segments_.begin(), segments_.end(), number,
        [](std::uint64_t value, const StoredSegment& each) { return value < each.first_block; }));
    const std::uint64_t index = number - segment->first_block;
    const std::uint64_t rest = segment->uncompressed_size - index * block_size_;
    return {segment->archive_offsets[index], segment->compressed_sizes[index],
            static_cast<std::uint32_t>(std::min(rest, block_size_))};
}

// Claims blocks that lie one behind the other.
std::vector<BlockSource::Place> BlockSource::claim(BlockCache& cache, std::uint64_t first,
                                                   std::uint64_t end) const {
    std::vector<Place> places;
    const std::uint64_t limit = std::min(end, first + max_run());
    for (std::uint64_t number = first; number < limit; ++number) {
        const Place place = place_of(number);
        if (!places.empty()) {
            const Place& last = places.back();
            const std::uint64_t last_end = last.archive_offset + last.compressed_size;
            if (place.archive_offset < last_end ||
                place.archive_offset > last_end + kBlockHeaderSize) {
                break;
            }
        }
        if (!cache.claim(number)) {
            break;
        }
        places.push_back(place);
    }
    return places;
}

// The compressed bytes of blocks, until the same thread reads others; fewer where the file ends.
std::span<const std::uint8_t> BlockSource::read_run(const std::vector<Place>& places) const {
    thread_local std::vector<std::uint8_t> buffer;
    const std::uint64_t begin = places.front().archive_offset;
    const std::size_t size = places.back().archive_offset + places.back().compressed_size - begin;
    buffer.resize(std::max(buffer.size(), size));
    const std::span<std::uint8_t> run = std::span(buffer).first(size);
    return run.first(read_fully(descriptor_, run, begin));
}

}  // namespace gompfs

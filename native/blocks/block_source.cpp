// Implements decoding from a local archive; see block_source.h.
//
// A "run" is a range of blocks that lie next to each other in the archive (neighbours); it is read
// into a buffer of the thread with one system call. load() claims the blocks of a run in the cache
// before it decodes them, and gives the claims back if it fails, so that another thread can try
// again. A damaged or unreadable block is only reported as missing here: the caller then asks the
// Python engine, which reports the error with archive, file and block.
#include "blocks/block_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "codec/block.h"
#include "shared/format_constants.h"

namespace gompfs {

namespace {

// Claims on consecutive blocks. The destructor gives up the claims that were not settled, so that
// other threads can decode these blocks.
class Claims {
  public:
    Claims(BlockCache& cache, std::uint64_t first) : cache_(cache), next_(first), end_(first) {}
    ~Claims() {
        while (next_ != end_) {
            settle(nullptr);
        }
    }
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;

    // Claims up to `count` further blocks, up to the first block that cannot be claimed. Returns
    // the number of new claims.
    std::size_t claim(std::size_t count) {
        const std::uint64_t first = end_;
        while (end_ - first < count && cache_.claim(end_)) {
            ++end_;
        }
        return end_ - first;
    }

    // Ends the first open claim: inserts the block, or gives the claim up if `block` is nullptr.
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
    std::uint64_t end_;
};

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

std::size_t read_fully(int descriptor, std::span<std::uint8_t> out, std::uint64_t offset) {
    std::size_t size = 0;
    while (size < out.size()) {
        const ssize_t count = ::pread(descriptor, out.data() + size, out.size() - size,
                                      static_cast<off_t>(offset + size));
        if (count > 0) {
            size += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            break;  // the Python engine reads these blocks again and reports the error
        }
    }
    return size;
}

}  // namespace

BlockSource::~BlockSource() { ::close(descriptor_); }

std::vector<BlockCache::Block> BlockSource::load(BlockCache& cache, std::uint64_t first,
                                                 std::uint64_t end) {
    std::vector<Place> places = neighbours(first, end);
    std::vector<BlockCache::Block> blocks;
    blocks.reserve(places.size());
    Claims claims(cache, first);
    places.resize(claims.claim(places.size()));
    if (places.empty()) {
        return blocks;
    }
    Batch batch(*work_);
    const Bytes run = read_run(places);
    for (const Place& place : places) {
        BlockCache::Block block = cache.make();
        if (!decode(block_of(run, place, places[0]), block->resize(place.uncompressed_size))) {
            block = nullptr;
        }
        batch.num_blocks += block != nullptr;
        batch.num_bytes += block ? place.uncompressed_size : 0;
        claims.settle(block);
        blocks.push_back(std::move(block));
    }
    return blocks;
}

bool BlockSource::decode_into(std::uint64_t stream_offset, MutableBytes out) const {
    Batch batch(*work_);
    const std::uint64_t stream_end = stream_offset + out.size();
    const std::uint64_t end = (stream_end + block_size_ - 1) / block_size_;
    std::uint64_t number = stream_offset / block_size_;
    while (number < end) {
        const std::vector<Place> places = neighbours(number, end);
        const Bytes run = read_run(places);
        for (const Place& place : places) {
            const std::uint64_t begin = number++ * block_size_;
            const Bytes block = block_of(run, place, places[0]);
            if (std::min(begin + block_size_, stream_end) > begin + place.uncompressed_size) {
                return false;  // the range crosses the end of a segment
            }
            if (begin >= stream_offset && begin + place.uncompressed_size <= stream_end) {
                const auto target = out.subspan(begin - stream_offset, place.uncompressed_size);
                if (!decode(block, target)) {
                    return false;
                }
            } else if (!decode_part_into(place, block, begin, stream_offset, out)) {
                return false;
            }
            ++batch.num_blocks;
            batch.num_bytes += place.uncompressed_size;
        }
    }
    return true;
}

// Decodes the block that begins at `begin` into temporary memory, and copies the part that belongs
// to `out`.
bool BlockSource::decode_part_into(const Place& place, Bytes block, std::uint64_t begin,
                                   std::uint64_t stream_offset, MutableBytes out) const {
    std::vector<std::uint8_t> content(place.uncompressed_size);
    if (!decode(block, content)) {
        return false;
    }
    const std::uint64_t from = std::max(begin, stream_offset);
    const std::uint64_t to = std::min(begin + block_size_, stream_offset + out.size());
    std::copy_n(content.begin() + (from - begin), to - from, out.begin() + (from - stream_offset));
    return true;
}

bool BlockSource::decode(Bytes block, MutableBytes content) const {
    const auto header = parse_block_header(block);
    return header && header->uncompressed_size == content.size() &&
           decode_block(*header, block, verify_, content) == BlockStatus::ok;
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

// The blocks from `first` on that lie next to each other in the archive.
std::vector<BlockSource::Place> BlockSource::neighbours(std::uint64_t first,
                                                        std::uint64_t end) const {
    std::vector<Place> places;
    const std::uint64_t limit = std::min(end, first + max_run());
    for (std::uint64_t number = first; number < limit; ++number) {
        const Place place = place_of(number);
        if (!places.empty()) {
            const Place& last = places.back();
            const std::uint64_t last_end = last.archive_offset + last.compressed_size;
            const std::uint64_t run_end = place.archive_offset + place.compressed_size;
            if (place.archive_offset < last_end ||
                place.archive_offset > last_end + kBlockHeaderSize ||
                run_end - places[0].archive_offset > 2 * kRunBytes) {
                break;
            }
        }
        places.push_back(place);
    }
    return places;
}

// Reads the compressed bytes of neighbouring blocks. The result is valid until the same thread
// calls this again, and is shorter if the file ends early.
Bytes BlockSource::read_run(const std::vector<Place>& places) const {
    thread_local std::vector<std::uint8_t> buffer;
    const std::uint64_t begin = places.front().archive_offset;
    const std::size_t size = places.back().archive_offset + places.back().compressed_size - begin;
    buffer.resize(std::max(buffer.size(), size));
    const std::span<std::uint8_t> run = std::span(buffer).first(size);
    return run.first(read_fully(descriptor_, run, begin));
}

// The bytes of one block in a run that begins with block `first`; shorter if the run ends early.
Bytes BlockSource::block_of(Bytes run, const Place& place, const Place& first) {
    const Bytes rest =
        run.subspan(std::min(run.size(), place.archive_offset - first.archive_offset));
    return rest.first(std::min<std::size_t>(rest.size(), place.compressed_size));
}

}  // namespace gompfs

// Implements reads of files; see block_reader.h.
//
// find_or_load is the core: for each block it takes the cached block, or else has as many blocks as
// possible decoded, or else waits for the thread that is decoding it. The loop ends because each
// turn adds a block, waits for another thread's claim to end, or stops at a block that cannot be
// decoded. Damaged blocks are remembered, so that files that share one do not decode it again.
#include "blocks/block_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "blocks/first_problem.h"
#include "common/large_vector.h"
#include "common/parallel.h"

namespace gompfs {

namespace {

using Reason = ReadFailure::Reason;

constexpr std::size_t kZeros = 1 << 20;
constexpr std::size_t kMaxDamaged = 1 << 12;
#ifndef MADV_POPULATE_WRITE
// The value in linux/mman.h, which may be older than the running kernel.
#define MADV_POPULATE_WRITE 23
#endif

std::uint8_t* zeros() {
    static std::uint8_t bytes[kZeros] = {};
    return bytes;
}

// Asks the system for the pages of `memory` at once instead of page by page. Throws
// std::system_error if the system has no memory left: writing to a page of a mapped file would then
// end the process (SIGBUS).
void touch(MutableBytes memory) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
    if (madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) != 0 &&
        errno != EINVAL) {  // Linux before 5.14 does not know MADV_POPULATE_WRITE
        throw std::system_error(ENOMEM, std::generic_category());
    }
}

}  // namespace

void BlockReader::read_from(std::shared_ptr<BlockSource> source) {
    const std::unique_lock lock(mutex_);
    source_ = std::move(source);
}

void BlockReader::decode_with(std::unique_ptr<BlockDecoder> decoder, unsigned num_threads) {
    decoder_ = std::move(decoder);
    num_threads_ = num_threads;
}

void BlockReader::set_capacity(std::uint64_t capacity) {
    cache.set_capacity(capacity);
    read_ahead.set_capacity(capacity);
}

void BlockReader::close() {
    read_ahead.close();
    read_from(nullptr);
}

std::shared_ptr<BlockSource> BlockReader::source() {
    const std::shared_lock lock(mutex_);
    return source_;
}

bool BlockReader::read(std::uint64_t ino, std::uint64_t file_offset, std::uint64_t size,
                       ReadPieces& out) try {
    return !read_pieces(ino, file_offset, size, out);
} catch (const std::exception&) {
    return false;
}

ReadFailure BlockReader::find_file(std::uint64_t ino, std::shared_ptr<const FileLayout>& file) try {
    file = layouts.find(ino);
    return {.reason = file ? Reason::none : Reason::no_such_file};
} catch (const std::invalid_argument&) {
    return {.reason = Reason::impossible_extents};
}

ReadFailure BlockReader::read_pieces(std::uint64_t ino, std::uint64_t file_offset,
                                     std::uint64_t size, ReadPieces& out) {
    std::shared_ptr<const FileLayout> file;
    ReadFailure failure = find_file(ino, file);
    if (failure) {
        return failure;
    }
    for_each_piece(
        *file, file_offset, size,
        [&](std::uint64_t stream_offset, std::uint64_t count) {
            failure = append_blocks({ino, stream_offset, count}, out);
            return !failure;
        },
        [&](std::uint64_t count) {
            append_zeros(count, out);
            return true;
        });
    return failure;
}

ReadFailure BlockReader::append_blocks(const StreamRead& read, ReadPieces& out) {
    const auto [ino, stream_offset, size] = read;
    const std::uint64_t first = stream_offset / block_size_;
    const std::uint64_t end = (stream_offset + size - 1) / block_size_ + 1;
    if (end > num_blocks_) {
        return {.reason = Reason::outside_stream};
    }
    const std::int64_t ahead = read_ahead.note(read, max_ahead.load(std::memory_order_relaxed));
    std::uint64_t hits = 0;
    std::vector<BlockCache::Block> blocks;
    const ReadFailure failure = find_or_load(first, end, ahead, blocks, hits);
    if (failure) {
        return failure;
    }
    num_hits.fetch_add(hits, std::memory_order_relaxed);
    std::uint64_t start = stream_offset % block_size_;
    std::uint64_t rest = size;
    for (BlockCache::Block& block : blocks) {
        const std::uint64_t count = std::min(block_size_ - start, rest);
        const auto bytes = block->bytes();
        if (start + count > bytes.size()) {
            return {.reason = Reason::outside_segment};
        }
        out.pieces.push_back({const_cast<std::uint8_t*>(bytes.data()) + start, count});
        out.blocks.push_back(std::move(block));
        rest -= count;
        start = 0;
    }
    out.size += size;
    return {};
}

void BlockReader::append_zeros(std::uint64_t size, ReadPieces& out) {
    for (std::uint64_t rest = size; rest > 0;) {
        const std::uint64_t count = std::min<std::uint64_t>(rest, kZeros);
        out.pieces.push_back({zeros(), count});
        rest -= count;
    }
    out.size += size;
}

// Appends the blocks [first, end) of the stream. `ahead` is what ReadAhead::note returned.
ReadFailure BlockReader::find_or_load(std::uint64_t first, std::uint64_t end, std::int64_t ahead,
                                      std::vector<BlockCache::Block>& blocks, std::uint64_t& hits) {
    while (first + blocks.size() < end) {
        const std::uint64_t number = first + blocks.size();
        if (BlockCache::Block block = cache.find(number)) {
            blocks.push_back(std::move(block));
            ++hits;
            continue;
        }
        if (const std::optional<BlockStatus> status = damage_of(number)) {
            return {Reason::damaged_block, number, *status};
        }
        const std::shared_ptr<BlockSource> source = this->source();
        if (!source && !decoder_) {
            return {Reason::missing_block, number};
        }
        if (source) {
            source->announce_head(number);
        }
        std::vector<LoadedBlock> loaded =
            source ? source->load(cache, number, end) : decode_around(number, end, ahead);
        if (loaded.empty()) {
            cache.wait(number);
            continue;
        }
        for (LoadedBlock& each : loaded) {
            if (!each.block) {
                return note_damage(first + blocks.size(), each.status);
            }
            blocks.push_back(std::move(each.block));
            num_misses.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return {};
}

// Claims a block together with its neighbours that are missing: those before `end`, and the `ahead`
// blocks that the reader will need next (negative for a backward reader). Decodes them all in one
// go. Returns the blocks from `number` on, up to `end` or to the first that was not claimed.
std::vector<LoadedBlock> BlockReader::decode_around(std::uint64_t number, std::uint64_t end,
                                                    std::int64_t ahead) {
    Claims claims(cache);
    if (!claims.claim(number)) {
        return {};
    }
    const std::uint64_t num_before = ahead < 0 ? static_cast<std::uint64_t>(-ahead) : 0;
    const std::uint64_t num_after = ahead > 0 ? static_cast<std::uint64_t>(ahead) : 0;
    std::uint64_t first = number;
    while (first > 0 && number - first < num_before && claims.claim(first - 1)) {
        --first;
    }
    const std::uint64_t limit = std::min(std::max(end, number + num_after), num_blocks_);
    for (std::uint64_t next = number + 1; next < limit && claims.claim(next);) {
        ++next;
    }
    claims.sort();
    std::vector<LoadedBlock> loaded = decode_claimed(claims);
    loaded.erase(loaded.begin(), loaded.begin() + static_cast<std::ptrdiff_t>(number - first));
    loaded.resize(std::min<std::size_t>(loaded.size(), end - number));
    return loaded;
}

// Has the decoder decode all claimed blocks, and copies them into the cache.
std::vector<LoadedBlock> BlockReader::decode_claimed(Claims& claims) {
    std::vector<LoadedBlock> loaded(claims.numbers().size());
    decoder_->decode(claims.numbers(), [&](std::span<const BlockDecoder::Decoded> decoded) {
        FirstProblem problem;
        parallel_for(decoded.size(), num_threads_, [&](std::size_t index) {
            const auto [content, status] = decoded[index];
            loaded[index].status = status;
            if (status != BlockStatus::ok) {
                note_damage(claims.numbers()[index], status);
                return;  // the claim ends with `claims`
            }
            problem.watch([&] {
                BlockCache::Block block = cache.make();
                std::copy(content.begin(), content.end(), block->resize(content.size()).begin());
                claims.settle(index, block);
                loaded[index].block = std::move(block);
                return ReadFailure();
            });
        });
        problem.get();
    });
    return loaded;
}

std::uint64_t BlockReader::load(const std::vector<std::uint64_t>& numbers, unsigned num_threads,
                                bool use_source) {
    const std::shared_ptr<BlockSource> source = this->source();
    if (source && use_source) {
        return load_from(*source, numbers, num_threads);
    }
    if (!decoder_) {
        return 0;
    }
    {
        Claims claims(cache);
        for (const std::uint64_t number : numbers) {
            claims.claim(number);
        }
        // A device decodes large batches. If most blocks are cached or claimed already, the source
        // decodes the few that are left.
        if (!source || 2 * claims.numbers().size() >= numbers.size()) {
            return claims.numbers().empty() ? 0 : decode_claimed(claims).size();
        }
    }
    return load_from(*source, numbers, num_threads);
}

std::uint64_t BlockReader::load_from(BlockSource& source, const std::vector<std::uint64_t>& numbers,
                                     unsigned num_threads) {
    std::vector<BlockRange> runs;
    for (const std::uint64_t number : numbers) {
        if (!runs.empty() && number == runs.back().end &&
            number - runs.back().first < source.max_run()) {
            ++runs.back().end;
        } else {
            runs.push_back({number, number + 1});
        }
    }
    std::atomic<std::uint64_t> num_loaded = 0;
    parallel_for(runs.size(), num_threads, [&](std::size_t index) {
        try {
            for (auto [first, end] = runs[index]; first < end;) {
                const std::size_t count = source.load(cache, first, end).size();
                num_loaded.fetch_add(count, std::memory_order_relaxed);
                first += std::max<std::size_t>(count, 1);
            }
        } catch (const std::bad_alloc&) {
            // A reader that asks for these blocks meets the same error and reports it.
        } catch (const std::system_error&) {
            // The same.
        }
    });
    return num_loaded;
}

ReadFailure BlockReader::decode_into(std::uint64_t ino, std::uint64_t file_offset, MutableBytes out,
                                     unsigned num_threads, bool use_source) {
    std::shared_ptr<const FileLayout> file;
    ReadFailure failure = find_file(ino, file);
    if (failure) {
        return failure;
    }
    std::size_t position = 0;
    for_each_piece(
        *file, file_offset, out.size(),
        [&](std::uint64_t stream_offset, std::uint64_t count) {
            failure =
                decode_range(stream_offset, out.subspan(position, count), num_threads, use_source);
            position += count;
            return !failure;
        },
        [&](std::uint64_t count) {
            position += count;
            return true;
        });
    return failure;
}

ReadFailure BlockReader::decode_range(std::uint64_t stream_offset, MutableBytes out,
                                      unsigned num_threads, bool use_source) {
    const std::uint64_t end = (stream_offset + out.size() - 1) / block_size_ + 1;
    if (end > num_blocks_) {
        return {.reason = Reason::outside_stream};
    }
    const std::shared_ptr<BlockSource> source = this->source();
    if (source && use_source) {
        return decode_from(*source, stream_offset, out, num_threads);
    }
    if (!decoder_) {
        return {Reason::missing_block, stream_offset / block_size_};
    }
    const std::uint64_t step = std::max<std::uint64_t>(decoder_->batch_bytes / block_size_, 1);
    FirstProblem problem;
    for (std::uint64_t first = stream_offset / block_size_; first < end && !problem.is_set();
         first += step) {
        std::vector<std::uint64_t> numbers(std::min(step, end - first));
        std::iota(numbers.begin(), numbers.end(), first);
        const std::uint64_t batch_begin = std::max(first * block_size_, stream_offset);
        const std::uint64_t batch_end =
            std::min((first + numbers.size()) * block_size_, stream_offset + out.size());
        touch(out.subspan(batch_begin - stream_offset, batch_end - batch_begin));
        decoder_->decode(numbers, [&](std::span<const BlockDecoder::Decoded> decoded) {
            parallel_for(decoded.size(), num_threads, [&](std::size_t index) {
                const std::uint64_t number = numbers[index];
                const auto [content, status] = decoded[index];
                const std::uint64_t begin = number * block_size_;
                const std::uint64_t from = std::max(begin, stream_offset);
                const std::uint64_t to = std::min(begin + block_size_, stream_offset + out.size());
                if (status != BlockStatus::ok) {
                    problem.set({Reason::damaged_block, number, status}, nullptr);
                } else if (to - begin > content.size()) {
                    problem.set({.reason = Reason::outside_segment}, nullptr);
                } else {
                    std::copy_n(content.begin() + (from - begin), to - from,
                                out.begin() + (from - stream_offset));
                }
            });
        });
    }
    return problem.get();
}

ReadFailure BlockReader::decode_from(BlockSource& source, std::uint64_t stream_offset,
                                     MutableBytes out, unsigned num_threads) {
    // With smaller pieces, several threads would fault in the same large page.
    const std::uint64_t step = std::max<std::uint64_t>(source.max_run() * block_size_, kLargePage);
    const std::uint64_t first = stream_offset / step;
    const std::uint64_t end = (stream_offset + out.size() + step - 1) / step;
    FirstProblem problem;
    parallel_for(end - first, num_threads, [&](std::size_t index) {
        const std::uint64_t from = std::max((first + index) * step, stream_offset);
        const std::uint64_t to = std::min((first + index + 1) * step, stream_offset + out.size());
        const MutableBytes part = out.subspan(from - stream_offset, to - from);
        if (problem.is_set()) {
            return;
        }
        problem.watch([&] {
            touch(part);
            return source.decode_into(from, part);
        });
    });
    return problem.get();
}

std::optional<BlockStatus> BlockReader::damage_of(std::uint64_t number) {
    const std::lock_guard lock(damage_mutex_);
    const auto found = damage_.find(number);
    return found == damage_.end() ? std::nullopt : std::make_optional(found->second);
}

ReadFailure BlockReader::note_damage(std::uint64_t number, BlockStatus status) {
    const std::lock_guard lock(damage_mutex_);
    if (damage_.size() > kMaxDamaged) {
        damage_.clear();
    }
    damage_[number] = status;
    return {Reason::damaged_block, number, status};
}

}  // namespace gompfs

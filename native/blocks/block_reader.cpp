// Implements reads from cached blocks; see block_reader.h.
//
// find_or_load is the core: for each block it takes the cached block, or else asks the source to
// decode as many blocks as possible, or else waits for the thread that is decoding it. The loop
// ends because each turn adds a block, waits for another thread's claim to end, or stops at a block
// that cannot be decoded. Out of memory is never an error here: the read is left to the
// interpreter.
#include "blocks/block_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "common/large_vector.h"
#include "common/parallel.h"

namespace gompfs {

namespace {

constexpr std::size_t kMaxFiles = 1 << 17;
constexpr std::size_t kZeros = 1 << 20;
#ifndef MADV_POPULATE_WRITE
// The value in linux/mman.h, which may be older than the running kernel.
#define MADV_POPULATE_WRITE 23
#endif

std::uint8_t* zeros() {
    static std::uint8_t bytes[kZeros] = {};
    return bytes;
}

// Asks the system for the pages of `memory` at once instead of page by page. Returns false if the
// system has no memory left: writing to a page of a mapped file would then end the process
// (SIGBUS).
bool touch(MutableBytes memory) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
    return madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0 ||
           errno == EINVAL;  // Linux before 5.14 does not know MADV_POPULATE_WRITE
}

}  // namespace

void BlockReader::add_files(std::vector<std::pair<std::uint64_t, FileLayout>> layouts) {
    const std::unique_lock lock(mutex_);
    if (files_.size() + layouts.size() > kMaxFiles) {
        files_.clear();
    }
    for (auto& [node, layout] : layouts) {
        files_[node] = std::make_shared<const FileLayout>(std::move(layout));
    }
}

void BlockReader::read_from(std::shared_ptr<BlockSource> source) {
    const std::unique_lock lock(mutex_);
    source_ = std::move(source);
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

bool BlockReader::knows(std::uint64_t node) { return find_file(node) != nullptr; }

std::shared_ptr<const FileLayout> BlockReader::find_file(std::uint64_t node) {
    const std::shared_lock lock(mutex_);
    const auto found = files_.find(node);
    return found == files_.end() ? nullptr : found->second;
}

bool BlockReader::is_small(std::uint64_t node) {
    const std::shared_ptr<const FileLayout> file = find_file(node);
    return file && file->size < open_below.load(std::memory_order_relaxed);
}

bool BlockReader::read(std::uint64_t node, std::uint64_t file_offset, std::uint64_t size,
                       ReadPieces& out) try {
    const std::shared_ptr<const FileLayout> file = find_file(node);
    if (!file) {
        return false;
    }
    const std::uint64_t end =
        file_offset + std::min(size, file->size - std::min(file_offset, file->size));
    std::uint64_t position = file_offset;
    auto extent = std::partition_point(
        file->extents.begin(), file->extents.end(), [&](const FileExtent& candidate) {
            return candidate.file_offset + candidate.size <= file_offset;
        });
    for (; position < end; ++extent) {
        const bool is_last = extent == file->extents.end();
        const std::uint64_t begin = is_last ? end : std::min(extent->file_offset, end);
        if (begin > position && !append_zeros(begin - position, out)) {
            return false;
        }
        position = std::max(position, begin);
        if (is_last || position == end) {
            break;
        }
        const std::uint64_t piece = std::min(extent->file_offset + extent->size, end) - position;
        const std::uint64_t place = extent->stream_offset + (position - extent->file_offset);
        if (!append_blocks({node, place, piece}, out)) {
            return false;
        }
        position += piece;
    }
    num_read_bytes.fetch_add(out.size, std::memory_order_relaxed);
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

bool BlockReader::append_blocks(const StreamRead& read, ReadPieces& out) {
    const auto [node, stream_offset, size] = read;
    const std::uint64_t first = stream_offset / block_size_;
    const std::uint64_t end = (stream_offset + size - 1) / block_size_ + 1;
    if (end > num_blocks_) {
        return false;
    }
    // If blocks are decoded by the interpreter, it reports the read to ReadAhead itself.
    const std::uint64_t ahead = max_ahead.load(std::memory_order_relaxed);
    const bool decodes_here = source() != nullptr;
    if (decodes_here) {
        read_ahead.note(read, ahead);
    }
    std::uint64_t hits = 0;
    std::vector<BlockCache::Block> blocks = find_or_load(first, end, hits);
    if (blocks.size() < end - first) {
        return false;
    }
    num_hits.fetch_add(hits, std::memory_order_relaxed);
    std::uint64_t start = stream_offset % block_size_;
    std::uint64_t rest = size;
    for (BlockCache::Block& block : blocks) {
        const std::uint64_t count = std::min(block_size_ - start, rest);
        const auto bytes = block->bytes();
        if (start + count > bytes.size()) {
            return false;
        }
        out.pieces.push_back({const_cast<std::uint8_t*>(bytes.data()) + start, count});
        out.blocks.push_back(std::move(block));
        rest -= count;
        start = 0;
    }
    out.size += size;
    if (!decodes_here) {
        read_ahead.note(read, ahead);
    }
    return true;
}

std::vector<BlockCache::Block> BlockReader::find_or_load(std::uint64_t first, std::uint64_t end,
                                                         std::uint64_t& hits) {
    std::vector<BlockCache::Block> blocks;
    while (first + blocks.size() < end) {
        const std::uint64_t number = first + blocks.size();
        if (BlockCache::Block block = cache.find(number)) {
            blocks.push_back(std::move(block));
            ++hits;
            continue;
        }
        const std::shared_ptr<BlockSource> source = this->source();
        if (!source) {
            return blocks;
        }
        std::vector<BlockCache::Block> loaded = source->load(cache, number, end);
        if (loaded.empty()) {
            cache.wait(number);
            continue;
        }
        for (BlockCache::Block& block : loaded) {
            if (!block) {
                return blocks;
            }
            blocks.push_back(std::move(block));
            num_misses.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return blocks;
}

void BlockReader::load(const std::vector<std::uint64_t>& numbers, unsigned num_threads) {
    const std::shared_ptr<BlockSource> source = this->source();
    if (!source) {
        return;
    }
    std::vector<BlockRange> runs;
    for (const std::uint64_t number : numbers) {
        if (!runs.empty() && number == runs.back().end &&
            number - runs.back().first < source->max_run()) {
            ++runs.back().end;
        } else {
            runs.push_back({number, number + 1});
        }
    }
    parallel_for(runs.size(), num_threads, [&](std::size_t index) {
        try {
            for (auto [first, end] = runs[index]; first < end;) {
                first += std::max<std::size_t>(source->load(cache, first, end).size(), 1);
            }
        } catch (const std::bad_alloc&) {
            // A reader that asks for these blocks meets the same error and reports it.
        }
    });
}

bool BlockReader::decode_into(std::uint64_t stream_offset, MutableBytes out, unsigned num_threads) {
    const std::shared_ptr<BlockSource> source = this->source();
    if (!source || stream_offset + out.size() > num_blocks_ * block_size_) {
        return false;
    }
    // With smaller pieces, several threads would fault in the same large page.
    const std::uint64_t step = std::max<std::uint64_t>(source->max_run() * block_size_, kLargePage);
    const std::uint64_t first = stream_offset / step;
    const std::uint64_t end = (stream_offset + out.size() + step - 1) / step;
    std::atomic<bool> is_sound = true;
    parallel_for(end - first, num_threads, [&](std::size_t index) {
        const std::uint64_t from = std::max((first + index) * step, stream_offset);
        const std::uint64_t to = std::min((first + index + 1) * step, stream_offset + out.size());
        const MutableBytes part = out.subspan(from - stream_offset, to - from);
        try {
            if (!is_sound || !touch(part) || !source->decode_into(from, part)) {
                is_sound = false;
            }
        } catch (const std::bad_alloc&) {
            is_sound = false;
        }
    });
    return is_sound;
}

bool BlockReader::append_zeros(std::uint64_t size, ReadPieces& out) {
    if (size > kZeros) {
        return false;
    }
    out.pieces.push_back({zeros(), size});
    out.size += size;
    return true;
}

}  // namespace gompfs

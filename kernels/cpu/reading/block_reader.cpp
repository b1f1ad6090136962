#include "reading/block_reader.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

namespace gompfs {

namespace {

constexpr std::size_t kMaxFiles = 1 << 17;
constexpr std::size_t kZeros = 1 << 20;

std::uint8_t* zeros() {
    static std::uint8_t bytes[kZeros] = {};
    return bytes;
}

}  // namespace

void BlockReader::add_files(std::vector<std::pair<std::uint64_t, FileLayout>> layouts) {
    const std::unique_lock lock(files_mutex_);
    if (files_.size() + layouts.size() > kMaxFiles) {
        files_.clear();
    }
    for (auto& [node, layout] : layouts) {
        files_[node] = std::make_shared<const FileLayout>(std::move(layout));
    }
}

bool BlockReader::knows(std::uint64_t node) { return find_file(node) != nullptr; }

std::shared_ptr<const FileLayout> BlockReader::find_file(std::uint64_t node) {
    const std::shared_lock lock(files_mutex_);
    const auto found = files_.find(node);
    return found == files_.end() ? nullptr : found->second;
}

bool BlockReader::is_small(std::uint64_t node) {
    const std::shared_ptr<const FileLayout> file = find_file(node);
    return file && file->size < open_below.load(std::memory_order_relaxed);
}

bool BlockReader::read(std::uint64_t node, std::uint64_t file_offset, std::uint64_t size,
                       ReadPieces& out) {
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
    num_hits.fetch_add(out.blocks.size(), std::memory_order_relaxed);
    num_read_bytes.fetch_add(out.size, std::memory_order_relaxed);
    return true;
}

bool BlockReader::append_blocks(const StreamRead& read, ReadPieces& out) {
    const auto [node, stream_offset, size] = read;
    const std::uint64_t first = stream_offset / block_size_;
    const std::uint64_t last = (stream_offset + size - 1) / block_size_;
    if (last >= num_blocks_) {
        return false;
    }
    for (std::uint64_t number = first; number <= last; ++number) {
        BlockTable::Block block = table.find(number);
        const std::uint64_t start = number == first ? stream_offset % block_size_ : 0;
        const std::uint64_t end =
            std::min(stream_offset + size - number * block_size_, block_size_);
        if (!block || end > block->bytes.size()) {
            return false;
        }
        out.pieces.push_back({const_cast<std::uint8_t*>(block->bytes.data()) + start, end - start});
        out.blocks.push_back(std::move(block));
    }
    out.size += size;
    read_ahead.note(read, max_ahead.load(std::memory_order_relaxed));
    return true;
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

// Uses what a scan of blocks has found; see scanned_blocks.h.
#include "search/gpu/scanned_blocks.h"

#include <algorithm>
#include <utility>

namespace gompfs::search {

bool ScannedFile::has_nul() const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [](const Block& block) { return block.has_nul; });
}

// Returns the position to read from in order to see the whole line that is open where `block`
// begins, and num_before lines before that line: an earlier block, and the offset of its last line.
// The position may be earlier than necessary.
ScannedFile::Position ScannedFile::begin_before(std::size_t block, std::size_t num_before) const {
    std::uint64_t num_lines = 0;
    while (block-- > 0) {
        if (blocks_[block].num_lines != 0 && num_lines >= num_before) {
            return {block, blocks_[block].last_line};
        }
        num_lines += blocks_[block].num_lines;
    }
    return {0, 0};
}

// Returns the block before which reading may end: by then, the rest of the line that is open where
// `block` begins has been read, and num_after lines after that line.
std::size_t ScannedFile::end_after(std::size_t block, std::size_t num_after) const {
    for (std::uint64_t num_lines = 0; block < blocks_.size() && num_lines <= num_after; ++block) {
        num_lines += blocks_[block].num_lines;
    }
    return block;
}

// The first block is always read: its columns may describe other files in the block, too.
std::vector<FileRange> ScannedFile::ranges(std::size_t num_before, std::size_t num_after) const {
    std::vector<FileRange> ranges;
    std::size_t end = 0;  // of the blocks of the last range
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
        if (!blocks_[block].may_match && block != 0) {
            continue;
        }
        const Position begin = begin_before(block, num_before);
        if (ranges.empty() || begin.block >= end) {
            FileRange range{blocks_[begin.block].begin + begin.offset, 0, 0};
            for (std::size_t before = end; begin.offset != 0 && before <= begin.block; ++before) {
                range.num_lines_before += blocks_[before].num_lines;
            }
            ranges.push_back(range);
        }
        while (block + 1 < blocks_.size() && blocks_[block + 1].may_match) {
            ++block;
        }
        end = std::max(end, end_after(block + 1, num_after));
        ranges.back().end = blocks_[end - 1].end;
    }
    return ranges;
}

// Calls take(number, offset, size) for the blocks of the stream that a file is in, with its bytes
// there, until it returns false.
template <typename Take>
void ScannedBlocks::for_each_block(const LayoutView& file, const Take& take) const {
    for (const FileExtent& extent : file.extents) {
        for (std::uint64_t done = 0; done < extent.size;) {
            const std::uint64_t position = extent.stream_offset + done;
            const std::uint64_t at = position % block_size_;
            const std::uint64_t size = std::min(block_size_ - at, extent.size - done);
            if (!take(position / block_size_, at, size)) {
                return;
            }
            done += size;
        }
    }
}

// Returns whether the file has no holes, and its bytes follow each other in the stream's blocks.
// This is so for files with one extent, and for files whose extents end where parts of the stream
// end.
bool ScannedBlocks::is_in_succession(const LayoutView& file) const {
    std::uint64_t num_bytes = 0, next_block = 0;
    std::uint64_t next_at = 0;
    bool is_first = true, is_succession = true;
    for_each_block(file, [&](std::uint64_t block, std::uint64_t at, std::uint64_t size) {
        const bool is_known = block < columns_.sizes.size() && at + size <= columns_.sizes[block];
        is_succession = is_known && (is_first || (block == next_block && at == next_at));
        is_first = false;
        num_bytes += size;
        const bool is_end = is_known && at + size == columns_.sizes[block];
        next_block = block + is_end;
        next_at = is_end ? 0 : at + size;
        return is_succession;
    });
    return is_succession && num_bytes == file.size;
}

bool ScannedBlocks::may_match(const LayoutView& file) const {
    if (!is_in_succession(file)) {
        return true;
    }
    bool found = false;
    for_each_block(file, [&](std::uint64_t block, std::uint64_t, std::uint64_t) {
        found = columns_.may_match[block] != 0;
        return !found;
    });
    return found;
}

std::optional<ScannedFile> ScannedBlocks::blocks_of(const LayoutView& file) const {
    if (!is_in_succession(file) || file.size == 0) {
        return std::nullopt;
    }
    std::vector<ScannedFile::Block> blocks;
    std::uint64_t begin = 0;
    for_each_block(file, [&](std::uint64_t block, std::uint64_t at, std::uint64_t size) {
        if (at != 0 && !blocks.empty()) {  // a second extent in the same block
            begin += size;
            blocks.back().end = begin;
            return true;
        }
        blocks.push_back({begin, begin + size, columns_.may_match[block] != 0,
                          columns_.has_nul[block] != 0, columns_.num_lines[block],
                          columns_.last_lines[block]});
        begin += size;
        return true;
    });
    return ScannedFile(std::move(blocks));
}

}  // namespace gompfs::search

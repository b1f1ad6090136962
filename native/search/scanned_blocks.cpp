// Uses what a scan of blocks has found; see scanned_blocks.h.
#include "search/scanned_blocks.h"

#include <algorithm>
#include <utility>

namespace gompfs::search {

std::size_t ScannedFile::block_at(std::uint64_t offset) const {
    const auto found = std::partition_point(
        blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.end <= offset; });
    return static_cast<std::size_t>(found - blocks_.begin());
}

bool ScannedFile::has_nul() const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [](const Block& block) { return block.has_nul; });
}

std::uint64_t ScannedFile::read_size(std::uint64_t offset, std::uint64_t wanted) const {
    std::size_t index = block_at(offset);
    for (; index + 1 < blocks_.size(); ++index) {
        const bool may_skip = !blocks_[index].may_match && !blocks_[index + 1].may_match;
        if (may_skip || blocks_[index].end - offset >= wanted) {
            break;
        }
    }
    return blocks_[index].end - offset;
}

std::optional<ScannedFile::Skip> ScannedFile::skip_from(std::uint64_t line_begin,
                                                        std::uint64_t offset,
                                                        std::size_t num_before) const {
    const std::size_t first = block_at(offset);
    for (std::size_t index = block_at(line_begin); index < first; ++index) {
        if (blocks_[index].may_match) {
            return std::nullopt;  // the line must be searched
        }
    }
    std::size_t found = first;
    std::uint64_t num_lines = 0;
    while (found < blocks_.size() && !blocks_[found].may_match) {
        num_lines += blocks_[found++].num_lines;
    }
    if (found == blocks_.size()) {
        return Skip{blocks_.back().end, num_lines};
    }
    // Back to the beginning of a line that is far enough before.
    std::uint64_t num_after = 0;
    for (std::size_t index = found; index-- > first;) {
        const Block& block = blocks_[index];
        if (block.num_lines != 0 && num_after >= num_before) {
            return Skip{block.begin + block.last_line, num_lines - num_after};
        }
        num_after += block.num_lines;
    }
    return std::nullopt;
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

// Whether each byte of the file is in a block, and follows the byte before it there. Files with one
// extent are, but for holes; others are if a part ends at the end of an extent.
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

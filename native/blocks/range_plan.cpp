// Finds the blocks of ranges of files; see range_plan.h.
//
// Files are looked up in the order of their inode numbers, which is that of the index: a file whose
// layout is unknown is then often read together with those before it. It is mostly also the order
// of the stream, so that pieces need no sorting.
#include "blocks/range_plan.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace gompfs {

namespace {

// Of a piece with its columns, while a vector of pieces grows. In bytes.
constexpr std::uint64_t kMemoryPerPiece = 128;

constexpr std::uint64_t kMaxReserved = 1 << 16;  // pieces

}  // namespace

RangePlan::RangePlan(std::uint64_t num_blocks, std::uint64_t block_size, const FindFile& find_file,
                     std::span<const FileRange> ranges, ReadFailure& failure)
    : block_size_(block_size),
      num_blocks_(num_blocks),
      ranges_(ranges.begin(), ranges.end()),
      order_(ranges.size()),
      files_(ranges.size()),
      offsets_(ranges.size() + 1) {
    if (ranges_.size() >= std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("too many ranges");
    }
    // pairs are sorted without looking at the ranges, which are not adjacent
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_ino(ranges_.size());
    for (std::uint32_t number = 0; number < ranges_.size(); ++number) {
        by_ino[number] = {ranges_[number].ino, number};
    }
    std::sort(by_ino.begin(), by_ino.end());
    std::transform(by_ino.begin(), by_ino.end(), order_.begin(),
                   [](const auto& each) { return each.second; });
    for (const std::uint32_t number : order_) {
        FileRange& range = ranges_[number];
        failure = find_file(range.ino, files_[number]);
        if (failure) {
            failed_range_ = number;
            return;
        }
        range.end = std::min(range.end, files_[number]->size);
        range.begin = std::min(range.begin, range.end);
    }
    std::uint64_t size = 0;
    for (std::size_t number = 0; number < ranges_.size(); ++number) {
        size += ranges_[number].end - ranges_[number].begin;
        if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            throw std::invalid_argument("the files are too large for one array");
        }
        offsets_[number + 1] = static_cast<std::int64_t>(size);
    }
}

ReadFailure RangePlan::locate(std::uint64_t memory) {
    const std::uint64_t most = memory / kMemoryPerPiece;
    holes_.clear();
    std::vector<Piece> pieces;
    // mostly enough; not more, since sizes may be forged
    pieces.reserve(std::min<std::uint64_t>(
        static_cast<std::uint64_t>(offsets_.back()) / block_size_ + 2 * ranges_.size(),
        kMaxReserved));
    ReadFailure failure;
    for (const std::uint32_t number : order_) {
        const auto [ino, begin, end] = ranges_[number];
        auto target = static_cast<std::uint64_t>(offsets_[number]);
        for_each_piece(
            *files_[number], begin, end - begin,
            [&](std::uint64_t stream_offset, std::uint64_t size) {
                if ((stream_offset + size - 1) / block_size_ >= num_blocks_) {
                    failure = {.reason = ReadFailure::Reason::outside_stream};
                    failed_range_ = number;
                    return false;
                }
                cut(number, stream_offset, size, target, pieces);
                target += size;
                return true;
            },
            [&](std::uint64_t size) {
                holes_.push_back({target, size});
                target += size;
                return true;
            });
        if (failure) {
            return failure;
        }
        if (pieces.size() + holes_.size() > most) {
            throw std::bad_alloc();
        }
    }
    store(pieces);
    return {};
}

std::optional<std::uint64_t> RangePlan::overrun_block(std::span<const std::uint32_t> sizes) const {
    if (sizes.size() < num_blocks_) {
        throw std::invalid_argument("each block needs a size");
    }
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
        const std::uint64_t size = sizes[blocks_[index]];
        for (std::size_t piece = first_pieces_[index]; piece < first_pieces_[index + 1]; ++piece) {
            if (std::uint64_t{begins_[piece]} + sizes_[piece] > size) {
                return blocks_[index];
            }
        }
    }
    return std::nullopt;
}

std::size_t RangePlan::range_of(std::uint64_t block) const {
    const auto found = std::lower_bound(blocks_.begin(), blocks_.end(), block) - blocks_.begin();
    const auto index = static_cast<std::size_t>(found);
    const auto ranges = std::span(ranges_of_pieces_)
                            .first(first_pieces_.at(index + 1))
                            .subspan(first_pieces_.at(index));
    return *std::min_element(ranges.begin(), ranges.end());
}

// Appends the pieces of a run of the stream.
void RangePlan::cut(std::uint32_t range, std::uint64_t stream_offset, std::uint64_t size,
                    std::uint64_t target, std::vector<Piece>& pieces) const {
    std::uint64_t block = stream_offset / block_size_;  // the only division: they take long
    std::uint64_t begin = stream_offset - block * block_size_;
    while (size > 0) {
        const std::uint64_t count = std::min(block_size_ - begin, size);
        pieces.push_back({block, static_cast<std::uint32_t>(begin),
                          static_cast<std::uint32_t>(count), target, range});
        ++block;
        begin = 0;
        target += count;
        size -= count;
    }
}

// Sorts the pieces by block, and stores them in columns.
void RangePlan::store(std::vector<Piece>& pieces) {
    if (pieces.size() >= std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("too many pieces of blocks");
    }
    const auto by_block = [](const Piece& one, const Piece& other) {
        return std::tie(one.block, one.begin) < std::tie(other.block, other.begin);
    };
    if (!std::is_sorted(pieces.begin(), pieces.end(), by_block)) {
        std::sort(pieces.begin(), pieces.end(), by_block);
    }
    blocks_.reserve(std::min<std::size_t>(pieces.size(), num_blocks_));
    first_pieces_.reserve(blocks_.capacity() + 1);
    begins_.reserve(pieces.size());
    sizes_.reserve(pieces.size());
    targets_.reserve(pieces.size());
    ranges_of_pieces_.reserve(pieces.size());
    for (const Piece& piece : pieces) {
        if (blocks_.empty() || blocks_.back() != piece.block) {
            blocks_.push_back(piece.block);
            first_pieces_.push_back(static_cast<std::uint32_t>(begins_.size()));
        }
        begins_.push_back(piece.begin);
        sizes_.push_back(piece.size);
        targets_.push_back(piece.target);
        ranges_of_pieces_.push_back(piece.range);
    }
    first_pieces_.push_back(static_cast<std::uint32_t>(begins_.size()));
}

}  // namespace gompfs

// Reads a file that is searched; see file_text.h.
#include "search/files/file_text.h"

#include <algorithm>
#include <cstring>

namespace gompfs::search {
namespace {

constexpr std::uint64_t kManyBlocks = 4;

}  // namespace

void FileText::set_size(std::size_t size) {
    if (buffer_.size() < size) {
        buffer_ = {};
        buffer_ = LargeVector<char>(size);
    }
    bytes_ = {buffer_.data(), size};
}

// Copies pieces to the buffer, one after another.
void FileText::join(const ReadPieces& read, std::size_t begin) {
    for (const iovec& piece : read.pieces) {
        std::memcpy(buffer_.data() + begin, piece.iov_base, piece.iov_len);
        begin += piece.iov_len;
    }
}

// Copies a range of the file from the cache.
ReadFailure FileText::copy(BlockReader& reader, std::uint64_t ino, std::size_t begin,
                           std::size_t end) {
    ReadPieces read;
    if (const ReadFailure failure = reader.read_pieces(ino, begin, end - begin, read)) {
        return failure;
    }
    join(read, begin);
    return {};
}

ReadFailure FileText::read_many_blocks(BlockReader& reader, std::uint64_t ino,
                                       const LayoutView& layout) {
    const std::uint64_t block_size = reader.block_size();
    const std::uint64_t stream_begin = layout.extents.front().stream_offset;
    const std::uint64_t stream_end =
        layout.extents.back().stream_offset + layout.extents.back().size;
    const std::size_t head = (block_size - stream_begin % block_size) % block_size;
    const std::size_t tail = layout.size - stream_end % block_size;
    set_size(layout.size);
    if (const ReadFailure failure = copy(reader, ino, 0, head)) {
        return failure;
    }
    const MutableBytes middle(reinterpret_cast<std::uint8_t*>(buffer_.data()) + head, tail - head);
    if (const ReadFailure failure = reader.decode_into(ino, head, middle, 1, true)) {
        return failure;
    }
    return copy(reader, ino, tail, layout.size);
}

ReadFailure FileText::read_alone(BlockReader& reader, std::uint64_t ino, const LayoutView& layout,
                                 unsigned num_threads) {
    set_size(layout.size);
    const MutableBytes bytes(reinterpret_cast<std::uint8_t*>(buffer_.data()), layout.size);
    if (has_holes(layout)) {
        std::fill(bytes.begin(), bytes.end(), 0);
    }
    return reader.decode_into(ino, 0, bytes, num_threads, true);
}

ReadFailure FileText::read(BlockReader& reader, std::uint64_t ino, const LayoutView& layout) {
    read_ = {};
    if (layout.size >= kManyBlocks * reader.block_size() && reader.has_source() &&
        !has_holes(layout)) {
        return read_many_blocks(reader, ino, layout);
    }
    if (const ReadFailure failure = reader.read_pieces(ino, 0, layout.size, read_)) {
        return failure;
    }
    if (read_.pieces.size() == 1) {
        const iovec& piece = read_.pieces.front();
        bytes_ = {static_cast<const char*>(piece.iov_base), piece.iov_len};
        return {};
    }
    set_size(layout.size);
    join(read_, 0);
    return {};
}

}  // namespace gompfs::search

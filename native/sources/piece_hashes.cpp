// Hashes pieces of a content; see piece_hashes.h.
#include "sources/piece_hashes.h"

#include <algorithm>
#include <utility>

#include "common/parallel.h"

namespace gompfs {

void PieceHashes::append(std::span<const std::uint8_t> bytes, unsigned num_threads) {
    const std::size_t first_size = open_ ? open_->size : 0;  // bytes of the first piece before
    const std::size_t end = first_size + bytes.size();
    const std::size_t num_ended = end / kPieceSize;
    const std::size_t num_pieces = (end + kPieceSize - 1) / kPieceSize;
    const std::size_t num_before = digests_.size();
    digests_.resize(num_before + num_ended);
    std::optional<OpenPiece> last;
    parallel_for(num_pieces, num_threads, [&](std::size_t index) {
        OpenPiece piece = index == 0 && open_ ? std::move(*open_) : OpenPiece{};
        const std::size_t start = index == 0 ? 0 : index * kPieceSize - first_size;
        const std::size_t count = std::min(kPieceSize - piece.size, bytes.size() - start);
        piece.hash.update(bytes.subspan(start, count));
        piece.size += count;
        if (piece.size == kPieceSize) {
            digests_[num_before + index] = piece.hash.digest();
        } else {
            last = std::move(piece);
        }
    });
    if (num_pieces != 0) {
        open_ = std::move(last);
    }
}

void PieceHashes::finish() {
    if (open_) {
        digests_.push_back(open_->hash.digest());
        open_.reset();
    }
}

}  // namespace gompfs

// The SHA-256 of each piece of 256 KiB of a content that comes in order, computed on several
// threads.
//
// One hash of the whole content would have to be computed by one thread, which takes longer than
// all else that is done to a large file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/sha256.h"

namespace gompfs {

class PieceHashes {
  public:
    static constexpr std::size_t kPieceSize = std::size_t{256} << 10;

    // Adds the next bytes, on up to num_threads threads. Throws std::bad_alloc.
    void append(std::span<const std::uint8_t> bytes, unsigned num_threads);
    // Ends the last piece, which may be shorter. Nothing can be added afterwards.
    void finish();
    // Of the pieces that have ended.
    const std::vector<Sha256::Digest>& digests() const { return digests_; }

  private:
    // A piece of which bytes have been added, but not all.
    struct OpenPiece {
        Sha256 hash;
        std::size_t size = 0;
    };

    std::vector<Sha256::Digest> digests_;
    std::optional<OpenPiece> open_;
};

}  // namespace gompfs

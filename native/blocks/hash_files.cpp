// Hashes files of an archive; see hash_files.h.
#include "blocks/hash_files.h"

#include <algorithm>

#include "common/cancellation.h"
#include "common/parallel.h"

namespace gompfs {
namespace {

constexpr std::size_t kFilesAtOnce = 16;            // by one thread; many are in one block
constexpr std::uint64_t kBytesAtOnce = 4ULL << 20;  // of a large file

FileHash hash_file(BlockReader& reader, const FileToHash& file) {
    Sha256 hash;
    for (std::uint64_t offset = 0; offset < file.size;) {
        throw_if_cancelled();
        ReadPieces found;
        const std::uint64_t wanted = std::min(kBytesAtOnce, file.size - offset);
        if (const ReadFailure failure = reader.read_pieces(file.ino, offset, wanted, found)) {
            return failure;
        }
        if (found.size != wanted) {
            return ReadFailure{.reason = ReadFailure::Reason::impossible_extents};
        }
        for (const iovec& piece : found.pieces) {
            hash.update({static_cast<const std::uint8_t*>(piece.iov_base), piece.iov_len});
        }
        offset += wanted;
    }
    return hash.digest();
}

}  // namespace

std::vector<FileHash> hash_files(BlockReader& reader, std::span<const FileToHash> files,
                                 unsigned num_threads) {
    std::vector<FileHash> hashes(files.size());
    const std::size_t num_groups = (files.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    parallel_for(num_groups, num_threads, [&](std::size_t group) {
        const std::size_t end = std::min(files.size(), (group + 1) * kFilesAtOnce);
        for (std::size_t index = group * kFilesAtOnce; index < end; ++index) {
            hashes[index] = hash_file(reader, files[index]);
        }
    });
    return hashes;
}

}  // namespace gompfs

// Hashes files of an archive; see hash_files.h.
#include "blocks/hash_files.h"

#include <algorithm>

#include "common/parallel.h"

namespace gompfs {
namespace {

constexpr std::size_t kFilesAtOnce = 16;  // by one thread; many are in one block

std::optional<Sha256::Digest> hash_file(BlockReader& reader, const FileToHash& file) {
    ReadPieces found;
    if (!reader.read(file.ino, 0, file.size, found) || found.size != file.size) {
        return std::nullopt;
    }
    Sha256 hash;
    for (const iovec& piece : found.pieces) {
        hash.update({static_cast<const std::uint8_t*>(piece.iov_base), piece.iov_len});
    }
    return hash.digest();
}

}  // namespace

std::vector<std::optional<Sha256::Digest>> hash_files(BlockReader& reader,
                                                      std::span<const FileToHash> files,
                                                      unsigned num_threads) {
    std::vector<std::optional<Sha256::Digest>> digests(files.size());
    const std::size_t num_groups = (files.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    parallel_for(num_groups, num_threads, [&](std::size_t group) {
        const std::size_t end = std::min(files.size(), (group + 1) * kFilesAtOnce);
        for (std::size_t index = group * kFilesAtOnce; index < end; ++index) {
            digests[index] = hash_file(reader, files[index]);
        }
    });
    return digests;
}

}  // namespace gompfs

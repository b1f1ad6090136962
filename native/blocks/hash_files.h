// Hashes files of an archive.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blocks/block_reader.h"
#include "common/sha256.h"

namespace gompfs {

struct FileToHash {
    std::uint64_t ino, size;
};

// Returns the SHA-256 of each file, or nothing for one that cannot be read or has fewer bytes than
// its size. Files that follow each other in the stream are decoded together. Throws
// std::bad_alloc and Cancelled.
std::vector<std::optional<Sha256::Digest>> hash_files(BlockReader& reader,
                                                      std::span<const FileToHash> files,
                                                      unsigned num_threads);

}  // namespace gompfs

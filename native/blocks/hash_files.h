// Hashes files of an archive.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "blocks/block_reader.h"
#include "common/sha256.h"

namespace gompfs {

struct FileToHash {
    std::uint64_t ino, size;
};

using FileHash = std::variant<Sha256::Digest, ReadFailure>;

// Returns the SHA-256 of each file, or why it cannot be read. Files that follow each other in the
// stream are decoded together. Throws what BlockReader::read_pieces throws, and Cancelled.
std::vector<FileHash> hash_files(BlockReader& reader, std::span<const FileToHash> files,
                                 unsigned num_threads);

}  // namespace gompfs

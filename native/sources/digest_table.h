// Numbers by the SHA-256 of a key: of the contents, or of the paths, of millions of files.
//
// A hash table in memory has 8 bytes for each slot: the index of a record, and bits of the digest
// that tell most other keys apart. The records, 40 bytes each, are spilled. So a key takes 11 to 22
// bytes of memory, and only a key that is found, or one whose slot has the same bits, costs reading
// a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/sha256.h"
#include "common/spilled_items.h"

namespace gompfs {

// Not thread-safe.
class DigestTable {
  public:
    // `directory` is for a temporary file. Methods throw std::system_error if it cannot be used.
    explicit DigestTable(const std::string& directory) : records_(directory) {}

    std::optional<std::uint64_t> find(const Sha256::Digest& digest) const;
    // Stores the number of a key, in place of the one that it has.
    void set(const Sha256::Digest& digest, std::uint64_t number);

    // The size of what is in memory, in bytes.
    std::uint64_t memory_size() const { return slots_.size() * sizeof(std::uint64_t); }

  private:
    struct Record {
        Sha256::Digest digest;
        std::uint64_t number;
    };

    std::size_t slot_of(const Sha256::Digest& digest) const;
    void grow();

    SpilledItems<Record> records_;  // of a key that was set again, the last one counts
    // The index of a record, plus one, above kMarkBits bits of its digest; 0 if the slot is free.
    std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1 << 10);
    std::uint64_t num_used_ = 0;
};

}  // namespace gompfs

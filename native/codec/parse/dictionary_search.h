// Finds positions in a dictionary whose bytes equal the next bytes of the content.
//
// The table has buckets of four entries, which fill a quarter of a cache line. A bucket has the
// four lowest addresses at which six bytes with its hash begin: a dictionary has its most useful
// strings first (dictionary_choice.h), and low addresses have short codes. An entry is an address
// and ten more bits of the hash, so that the bytes at an address are rarely loaded in vain.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "common/bytes.h"
#include "common/little_endian.h"

namespace gompfs {

class DictionarySearch {
  public:
    // A position of the content can be searched for if this many bytes can be read there.
    static constexpr std::uint32_t kReadLength = 8;
    static constexpr std::uint32_t kMaxFound = 4;

    // The bytes must outlive this object.
    explicit DictionarySearch(Bytes content);

    Bytes content() const { return content_; }

    // Loads the bucket of a position into the cache.
    void prefetch(const std::uint8_t* position) const {
        __builtin_prefetch(bucket(hash(position)));
    }

    // Calls found(address) for each address that may begin with the six bytes at `position`, lowest
    // first.
    template <typename Found>
    void for_each(const std::uint8_t* position, Found&& found) const {
        const std::uint64_t hashed = hash(position);
        const std::uint32_t* const entries = bucket(hashed);
        for (std::uint32_t index = 0; index < kMaxFound; ++index) {
            if ((entries[index] & kTagMask) == tag(hashed) && entries[index] != kNoEntry) {
                found(entries[index] >> kTagBits);
            }
        }
    }

  private:
    static constexpr int kHashedBits = 48;
    static constexpr int kTagBits = 10;
    static constexpr std::uint32_t kTagMask = (1u << kTagBits) - 1;
    static constexpr std::uint32_t kNoEntry = ~0u;

    static std::uint64_t hash(const std::uint8_t* position) {
        return (load<std::uint64_t>(position) << (64 - kHashedBits)) * 0x9e3779b185ebca87;
    }
    std::uint32_t tag(std::uint64_t hashed) const {
        return static_cast<std::uint32_t>(hashed >> (64 - bucket_bits_ - kTagBits)) & kTagMask;
    }
    const std::uint32_t* bucket(std::uint64_t hashed) const {
        return entries_.data() + (hashed >> (64 - bucket_bits_)) * kMaxFound;
    }

    const Bytes content_;
    const int bucket_bits_;
    std::vector<std::uint32_t> entries_;
};

}  // namespace gompfs

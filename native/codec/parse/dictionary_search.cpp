// Fills the buckets of a dictionary; see dictionary_search.h.
#include "codec/parse/dictionary_search.h"

#include <algorithm>

#include "shared/format_constants.h"

namespace gompfs {
namespace {

// A bucket for four bytes of the dictionary: as many entries as addresses.
int bucket_bits_of(std::size_t size) {
    constexpr int kMinBits = 4;
    return std::max(static_cast<int>(std::bit_width(size - 1)) - 2, kMinBits);
}

}  // namespace

DictionarySearch::DictionarySearch(Bytes content)
    : content_(content),
      bucket_bits_(bucket_bits_of(content.size())),
      entries_((std::size_t{1} << bucket_bits_) * kMaxFound, kNoEntry) {
    static_assert(kMaxDictionarySize <= (1 << (32 - kTagBits)) - 1, "kNoEntry is no address");
    for (std::size_t address = 0; address + kReadLength <= content.size(); ++address) {
        const std::uint64_t hashed = hash(content.data() + address);
        std::uint32_t* const first = entries_.data() + (hashed >> (64 - bucket_bits_)) * kMaxFound;
        std::uint32_t* const free = std::find(first, first + kMaxFound, kNoEntry);
        if (free != first + kMaxFound) {
            *free = static_cast<std::uint32_t>(address) << kTagBits | tag(hashed);
        }
    }
}

}  // namespace gompfs

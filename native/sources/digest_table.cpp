// Finds numbers by digests; see digest_table.h.
#include "sources/digest_table.h"

#include <cstring>
#include <stdexcept>

namespace gompfs {
namespace {

constexpr int kMarkBits = 24;
constexpr std::uint64_t kMaxRecords = (std::uint64_t{1} << (64 - kMarkBits)) - 1;

std::uint64_t first_bits(const Sha256::Digest& digest) {
    std::uint64_t bits;
    std::memcpy(&bits, digest.data(), sizeof bits);
    return bits;
}

// Bits other than those that choose the slot, unless there are more than 2^40 slots.
std::uint64_t mark_of(const Sha256::Digest& digest) {
    return first_bits(digest) >> (64 - kMarkBits);
}

}  // namespace

// The slot of a key, or the free one for it.
std::size_t DigestTable::slot_of(const Sha256::Digest& digest) const {
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t mark = mark_of(digest);
    std::size_t slot = first_bits(digest) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
        if ((slots_[slot] & ((1 << kMarkBits) - 1)) == mark &&
            records_[(slots_[slot] >> kMarkBits) - 1].digest == digest) {
            break;
        }
    }
    return slot;
}

std::optional<std::uint64_t> DigestTable::find(const Sha256::Digest& digest) const {
    const std::uint64_t found = slots_[slot_of(digest)];
    return found == 0 ? std::nullopt : std::optional(records_[(found >> kMarkBits) - 1].number);
}

void DigestTable::set(const Sha256::Digest& digest, std::uint64_t number) {
    if (records_.size() == kMaxRecords) {
        throw std::length_error("there are too many files");
    }
    if (4 * (num_used_ + 1) > 3 * slots_.size()) {
        grow();
    }
    const std::size_t slot = slot_of(digest);
    num_used_ += slots_[slot] == 0 ? 1 : 0;
    records_.push_back({digest, number});
    slots_[slot] = records_.size() << kMarkBits | mark_of(digest);
}

// Doubles the slots, and reads all records for that: the slots have too few bits of the digests.
void DigestTable::grow() {
    const std::size_t size = 2 * slots_.size();
    std::vector<std::uint64_t>().swap(slots_);  // before the larger ones are there
    slots_.resize(size);
    for (std::uint64_t index = 0; index < records_.size(); ++index) {
        const Sha256::Digest digest = records_[index].digest;
        slots_[slot_of(digest)] = (index + 1) << kMarkBits | mark_of(digest);
    }
}

}  // namespace gompfs

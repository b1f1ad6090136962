// Implements the pool of block-sized pieces; see block_memory.h.
//
// A slab is never freed before the pool is destroyed. add_slab reserves the vectors' capacity
// before it allocates, so that give_back never allocates and cannot throw.
#include "blocks/block_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "common/large_vector.h"

namespace gompfs {

namespace {

constexpr std::size_t kSlab = kLargePage;  // the first touch of a slab is then a single page fault
constexpr std::size_t kMaxFree = std::size_t{4} << 20;

}  // namespace

BlockMemory::~BlockMemory() {
    for (std::uint8_t* slab : slabs_) {
        std::free(slab);
    }
}

std::uint8_t* BlockMemory::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && fresh_.empty()) {
        add_slab();
    }
    std::vector<std::uint8_t*>& from = free_.empty() ? fresh_ : free_;
    std::uint8_t* const piece = from.back();
    from.pop_back();
    return piece;
}

// At most kMaxFree bytes of free pieces keep their pages, so that memory use shrinks when the cache
// does.
void BlockMemory::give_back(std::uint8_t* piece) {
    if (!process_.is_running()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if ((free_.size() + 1) * size_ <= kMaxFree) {
        free_.push_back(piece);
    } else {
        madvise(piece, size_, MADV_DONTNEED);
        fresh_.push_back(piece);
    }
}

void BlockMemory::add_slab() {
    const std::size_t size = std::max(kSlab, size_);
    free_.reserve(size / size_);
    slabs_.reserve(slabs_.size() + 1);
    fresh_.reserve((slabs_.size() + 1) * (size / size_));
    auto* const slab = static_cast<std::uint8_t*>(std::aligned_alloc(kSlab, size));
    if (slab == nullptr) {
        throw std::bad_alloc();
    }
    use_large_pages(slab, size);
    slabs_.push_back(slab);
    for (std::size_t count = size / size_; count != 0; --count) {
        fresh_.push_back(slab + (count - 1) * size_);
    }
}

}  // namespace gompfs

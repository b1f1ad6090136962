// Vectors of many megabytes, which use large pages and are not cleared when they grow. Touching
// fresh memory for the first time, page by page, otherwise takes as long as the work that is done
// with it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace gompfs {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

// Asks for large pages in the part of `memory` that is aligned to them. Has no effect if the system
// has none.
inline void use_large_pages(void* memory, std::size_t size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
    const std::uintptr_t end = (begin + size) / kLargePage * kLargePage;
    if (first < end) {
        madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    }
}

// Gives memory back to the system that was freed between objects still in use, if the C library
// can.
inline void free_unused_memory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

// An allocator that leaves new items uninitialised, and uses large pages for large vectors. With
// kIsZero the memory is zero, which fresh memory is anyway.
template <typename Value, bool kIsZero>
struct LargeAllocator {
    using value_type = Value;
    template <typename Other>
    struct rebind {
        using other = LargeAllocator<Other, kIsZero>;
    };

    LargeAllocator() = default;
    template <typename Other>
    LargeAllocator(const LargeAllocator<Other, kIsZero>&) {}

    Value* allocate(std::size_t count) {
        if (count > (~std::size_t{0} >> 1) / sizeof(Value)) {
            throw std::bad_array_new_length();
        }
        const std::size_t size = count * sizeof(Value);
        void* const memory = kIsZero ? std::calloc(count, sizeof(Value)) : take(size);
        if (memory == nullptr && count != 0) {
            throw std::bad_alloc();
        }
        use_large_pages(memory, size);
        return static_cast<Value*>(memory);
    }
    void deallocate(Value* memory, std::size_t) { std::free(memory); }

    template <typename Other>
    void construct(Other* item) {
        if constexpr (!kIsZero) {
            ::new (static_cast<void*>(item)) Other;
        }
    }
    template <typename Other, typename... Arguments>
    void construct(Other* item, Arguments&&... arguments) {
        ::new (static_cast<void*>(item)) Other(std::forward<Arguments>(arguments)...);
    }

    bool operator==(const LargeAllocator&) const { return true; }

  private:
    static void* take(std::size_t size) {
        return size < 2 * kLargePage ? std::malloc(size)
                                     : std::aligned_alloc(kLargePage, (size + kLargePage - 1) /
                                                                          kLargePage * kLargePage);
    }
};

// resize() leaves new items uninitialised.
template <typename Value>
using LargeVector = std::vector<Value, LargeAllocator<Value, false>>;

// Constructed once with its final size; all items are 0.
template <typename Value>
using ZeroVector = std::vector<Value, LargeAllocator<Value, true>>;

}  // namespace gompfs

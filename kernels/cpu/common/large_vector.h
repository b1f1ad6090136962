// Vectors of many megabytes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace gompfs {

// Memory that is not cleared when a vector grows, and in large pages where it is large: to touch it
// for the first time otherwise takes as long as what is then done with it.
template <typename Value>
struct LargeAllocator {
    using value_type = Value;

    LargeAllocator() = default;
    template <typename Other>
    LargeAllocator(const LargeAllocator<Other>&) {}

    Value* allocate(std::size_t count) {
        constexpr std::size_t kLargePage = std::size_t{2} << 20;
        if (count > (~std::size_t{0} >> 1) / sizeof(Value)) {
            throw std::bad_array_new_length();
        }
        const bool is_large = count * sizeof(Value) >= 2 * kLargePage;
        const std::size_t unit = is_large ? kLargePage : alignof(std::max_align_t);
        const std::size_t size = (count * sizeof(Value) + unit - 1) / unit * unit;
        void* const memory = is_large ? std::aligned_alloc(unit, size) : std::malloc(size);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        if (is_large) {
            madvise(memory, size, MADV_HUGEPAGE);  // where the system has none, nothing is lost
        }
        return static_cast<Value*>(memory);
    }
    void deallocate(Value* memory, std::size_t) { std::free(memory); }

    template <typename Other>
    void construct(Other* place) {
        ::new (static_cast<void*>(place)) Other;
    }
    template <typename Other, typename... Arguments>
    void construct(Other* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) Other(std::forward<Arguments>(arguments)...);
    }

    bool operator==(const LargeAllocator&) const { return true; }
};

// resize leaves new items without a value.
template <typename Value>
using LargeVector = std::vector<Value, LargeAllocator<Value>>;

// Memory of zeros, in large pages where it is large: fresh memory is not cleared once more.
template <typename Value>
struct ZeroAllocator {
    using value_type = Value;

    ZeroAllocator() = default;
    template <typename Other>
    ZeroAllocator(const ZeroAllocator<Other>&) {}

    Value* allocate(std::size_t count) {
        constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
        void* const memory = std::calloc(count, sizeof(Value));
        if (memory == nullptr && count != 0) {
            throw std::bad_alloc();
        }
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
        const std::uintptr_t end = (begin + count * sizeof(Value)) / kLargePage * kLargePage;
        if (first < end) {
            madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
        }
        return static_cast<Value*>(memory);
    }
    void deallocate(Value* memory, std::size_t) { std::free(memory); }

    template <typename Other>
    void construct(Other*) {}  // it is zero
    template <typename Other, typename... Arguments>
    void construct(Other* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) Other(std::forward<Arguments>(arguments)...);
    }

    bool operator==(const ZeroAllocator&) const { return true; }
};

// Made with its size once, of zeros.
template <typename Value>
using ZeroVector = std::vector<Value, ZeroAllocator<Value>>;

}  // namespace gompfs

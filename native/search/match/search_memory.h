// Counts the memory of what a text or a query makes large: long lines, their matches, what replaces
// them, files that are searched whole. All searches of the process share one limit, so that no
// query takes all memory of a daemon. What is small, or has a limit of its own, is not counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace gompfs::search {

// Thread-safe.
class SearchMemory {
  public:
    static SearchMemory& of_process();

    void set_limit(std::size_t num_bytes) { limit_ = num_bytes; }
    // Throws SearchError if there would be more than the limit.
    void take(std::size_t num_bytes);
    void give_back(std::size_t num_bytes) { taken_ -= num_bytes; }

  private:
    std::atomic<std::size_t> limit_{std::size_t{4} << 30};
    std::atomic<std::size_t> taken_{0};
};

// Memory that is counted while this object exists.
class TakenMemory {
  public:
    explicit TakenMemory(std::size_t num_bytes = 0) { set(num_bytes); }
    ~TakenMemory() { SearchMemory::of_process().give_back(num_bytes_); }
    TakenMemory(const TakenMemory&) = delete;
    TakenMemory& operator=(const TakenMemory&) = delete;

    // Counts so many bytes from now on, in place of those before. Throws SearchError.
    void set(std::size_t num_bytes) {
        if (num_bytes > num_bytes_) {
            SearchMemory::of_process().take(num_bytes - num_bytes_);
        } else {
            SearchMemory::of_process().give_back(num_bytes_ - num_bytes);
        }
        num_bytes_ = num_bytes;
    }

  private:
    std::size_t num_bytes_ = 0;
};

// An allocator whose large allocations count as memory of searches. Throws SearchError.
template <typename Value>
struct CountedAllocator {
    using value_type = Value;

    CountedAllocator() = default;
    template <typename Other>
    CountedAllocator(const CountedAllocator<Other>&) {}

    Value* allocate(std::size_t count) {
        if (is_counted(count)) {
            SearchMemory::of_process().take(count * sizeof(Value));
        }
        return std::allocator<Value>().allocate(count);
    }
    void deallocate(Value* memory, std::size_t count) {
        std::allocator<Value>().deallocate(memory, count);
        if (is_counted(count)) {
            SearchMemory::of_process().give_back(count * sizeof(Value));
        }
    }
    bool operator==(const CountedAllocator&) const = default;

  private:
    static constexpr std::size_t kSmall = 64 << 10;

    static bool is_counted(std::size_t count) { return count > kSmall / sizeof(Value); }
};

template <typename Value>
using CountedVector = std::vector<Value, CountedAllocator<Value>>;
using CountedString = std::basic_string<char, std::char_traits<char>, CountedAllocator<char>>;

}  // namespace gompfs::search

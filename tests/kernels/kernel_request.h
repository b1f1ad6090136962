// Shared by the programs that run kernels on the host: memory whose surroundings are poisoned, and
// the bytes and numbers of a request on standard input.
#pragma once

#include <sanitizer/asan_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace gompfs_test {

// Memory in which byte strings can be accessed that lie at multiples of 256, and nothing between.
class Arena {
  public:
    // Returns the offset of a string of `size` bytes.
    std::uint64_t add(std::size_t size) {
        sizes_.push_back(size);
        offsets_.push_back(end_);
        end_ += (size + kGap + kAlignment - 1) / kAlignment * kAlignment;
        return offsets_.back();
    }

    // Call after the last add().
    unsigned char* allocate(unsigned char fill) {
        memory_.resize(end_ + kAlignment, fill);
        unsigned char* const start = memory_.data();
        first_ = start +
                 (kAlignment - reinterpret_cast<std::uintptr_t>(start) % kAlignment) % kAlignment;
        for (std::size_t index = 0; index < sizes_.size(); ++index) {
            const std::size_t next = index + 1 < sizes_.size() ? offsets_[index + 1] : end_;
            const std::size_t end = offsets_[index] + sizes_[index];
            ASAN_POISON_MEMORY_REGION(first_ + end, next - end);
        }
        return first_;
    }

    ~Arena() { ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size()); }
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

  private:
    static constexpr std::size_t kAlignment = 256, kGap = 64;
    std::vector<std::size_t> sizes_, offsets_;
    std::vector<unsigned char> memory_;
    unsigned char* first_ = nullptr;
    std::size_t end_ = 0;
};

using Buffer = std::vector<unsigned char>;

inline Buffer read_bytes(std::size_t size) {
    Buffer bytes(size);
    if (std::fread(bytes.data(), 1, size, stdin) != size) {
        std::abort();
    }
    return bytes;
}

inline std::uint32_t read_number() {
    std::uint32_t number;
    std::memcpy(&number, read_bytes(sizeof number).data(), sizeof number);
    return number;
}

}  // namespace gompfs_test

// A pool of memory buffers. The system clears fresh memory page by page, which takes as long as
// decoding into it, so buffers are reused.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace gompfs {

// Hands out memory, and takes it back when the last owner drops it. Safe for any number of threads.
// The mutex is only locked while the GIL is held, as it is during a fork; so the child of a fork
// never finds the mutex locked.
class BufferPool {
  public:
    static constexpr std::size_t kUnit = std::size_t{1} << 16;
    static constexpr std::size_t kMaxFree = std::size_t{64} << 20;

    // Returns at least `size` bytes of memory with undefined content. The memory may outlive the
    // pool. Throws std::bad_alloc.
    std::shared_ptr<std::uint8_t> allocate(std::size_t size) {
        Buffer buffer = take(size);
        std::uint8_t* const data = buffer.data.get();
        const std::weak_ptr<Free> free = free_;
        const auto give_back = [free, size = buffer.size](std::uint8_t* bytes) {
            Buffer returned{Memory(bytes), size};
            if (const auto pool = free.lock()) {
                pool->insert(std::move(returned));
            }
        };
        (void)buffer.data.release();  // if the shared_ptr cannot be made, it calls give_back itself
        return {data, give_back};
    }

    // Returns free memory to the system.
    void drop_free() {
        const std::lock_guard lock(free_->mutex);
        free_->buffers.clear();
    }

    std::size_t num_free_bytes() const {
        const std::lock_guard lock(free_->mutex);
        return free_->size();
    }

  private:
    struct Deleter {
        void operator()(std::uint8_t* data) const { std::free(data); }
    };
    using Memory = std::unique_ptr<std::uint8_t, Deleter>;

    struct Buffer {
        Memory data;
        std::size_t size;
    };

    struct Free {
        std::mutex mutex;
        std::vector<Buffer> buffers;

        std::size_t size() const {
            std::size_t sum = 0;
            for (const Buffer& buffer : buffers) {
                sum += buffer.size;
            }
            return sum;
        }

        void insert(Buffer buffer) {
            const std::lock_guard lock(mutex);
            if (size() + buffer.size <= kMaxFree) {
                buffers.push_back(std::move(buffer));
            }
        }
    };

    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    // Returns the most recently used free buffer that is large enough and not much too large, or
    // else a new one.
    Buffer take(std::size_t size) {
        {
            const std::lock_guard lock(free_->mutex);
            auto& buffers = free_->buffers;
            const auto found =
                std::find_if(buffers.rbegin(), buffers.rend(), [&](const Buffer& buffer) {
                    return size <= buffer.size && buffer.size <= 2 * std::max(size, kUnit);
                });
            if (found != buffers.rend()) {
                Buffer buffer = std::move(*found);
                buffers.erase(std::next(found).base());
                return buffer;
            }
        }
        const std::size_t rounded = (std::max(size, std::size_t{1}) + kUnit - 1) / kUnit * kUnit;
        if (rounded < size) {
            throw std::bad_alloc();
        }
        const std::size_t alignment = rounded >= 2 * kHugePage ? kHugePage : 4096;
        const std::size_t padded = (rounded + alignment - 1) / alignment * alignment;
        auto* const data = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, padded));
        if (data == nullptr) {
            throw std::bad_alloc();
        }
        if (alignment == kHugePage) {
            madvise(data, padded, MADV_HUGEPAGE);
        }
        return {Memory(data), padded};
    }

    std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace gompfs

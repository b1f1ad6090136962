// Bytes that are read while others still come.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>

namespace gompfs {

// How much of some memory has been filled, from its beginning on. Any thread may call.
class Arrival {
  public:
    void advance(std::size_t size) {
        const std::lock_guard lock(mutex_);
        size_ = size;
        changed_.notify_all();
    }

    // The rest will not come.
    void give_up() {
        const std::lock_guard lock(mutex_);
        is_given_up_ = true;
        changed_.notify_all();
    }

    // Waits until at least so many bytes are there; how many. Throws std::invalid_argument where
    // they will not come.
    std::size_t wait_for(std::size_t size) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return size_ >= size || is_given_up_; });
        if (size_ < size) {
            throw std::invalid_argument("the rest of it could not be read");
        }
        return size_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t size_ = 0;
    bool is_given_up_ = false;
};

}  // namespace gompfs

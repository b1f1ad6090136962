// Requests that wait for a text that is still being computed.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace gompfs {

// The requests, by the number that the kernel gave them. The thread that removes a request must
// answer it, so every parked request is answered once. Safe for any number of threads.
class ParkedRequests {
  public:
    void insert(std::uint64_t unique) {
        const std::lock_guard lock(mutex_);
        requests_.insert(unique);
    }

    // Returns whether the request was parked.
    bool remove(std::uint64_t unique) {
        const std::lock_guard lock(mutex_);
        return requests_.erase(unique) != 0;
    }

    // Leaves all requests unanswered.
    void clear() {
        const std::lock_guard lock(mutex_);
        requests_.clear();
    }

  private:
    std::mutex mutex_;
    std::unordered_set<std::uint64_t> requests_;
};

}  // namespace gompfs

// Counts how much was decoded, and how long decoding took.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>

namespace gompfs {

// Sums over batches. Safe for any number of threads.
class DecodeWork {
  public:
    struct Sums {
        std::uint64_t num_blocks = 0;
        std::uint64_t num_bytes = 0;
        double seconds = 0;  // time during which at least one batch was running
    };

    void begin() {
        const std::lock_guard lock(mutex_);
        if (num_at_work_++ == 0) {
            busy_since_ = Clock::now();
        }
    }

    // Ends a batch that decoded this much; zeros if it failed.
    void end(std::uint64_t num_blocks, std::uint64_t num_bytes) {
        const std::lock_guard lock(mutex_);
        sums_.num_blocks += num_blocks;
        sums_.num_bytes += num_bytes;
        if (--num_at_work_ == 0) {
            sums_.seconds += busy_seconds();
        }
    }

    Sums sums() const {
        const std::lock_guard lock(mutex_);
        Sums sums = sums_;
        sums.seconds += num_at_work_ ? busy_seconds() : 0.0;
        return sums;
    }

    // Resets the sums. No batch may be running.
    void clear() {
        const std::lock_guard lock(mutex_);
        sums_ = {};
    }

    // Resets everything in the child of a fork, where a thread that does not exist there may have
    // held the mutex.
    void restart() {
        new (&mutex_) std::mutex;
        sums_ = {};
        num_at_work_ = 0;
    }

  private:
    using Clock = std::chrono::steady_clock;

    double busy_seconds() const {
        return std::chrono::duration<double>(Clock::now() - busy_since_).count();
    }

    mutable std::mutex mutex_;
    Sums sums_;
    std::uint64_t num_at_work_ = 0;
    Clock::time_point busy_since_;
};

}  // namespace gompfs

// How much was decoded, and how long that took.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>

namespace gompfs {

// Adds up batches; safe for any number of threads.
class DecodeWork {
  public:
    struct Sums {
        std::uint64_t num_blocks = 0;
        std::uint64_t num_bytes = 0;
        double seconds = 0;  // in which there was a batch at work, or more than one
    };

    void begin() {
        const std::lock_guard lock(mutex_);
        if (num_at_work_++ == 0) {
            busy_since_ = Clock::now();
        }
    }

    // Ends a batch, which has decoded so much: nothing if it failed.
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

    // Begins again; not while a batch is at work.
    void clear() {
        const std::lock_guard lock(mutex_);
        sums_ = {};
    }

    // Begins again in a child of a fork, where a thread that is gone may have held the mutex.
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

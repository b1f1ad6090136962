// How long requests took, for the metrics of a mount.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gompfs {

// Counts times in classes whose bounds double: class i has the times of at most 2^(10 + i)
// nanoseconds, the first class up to about 1 us; the last class has all longer times. Any number of
// threads may add and read.
class LatencyHistogram {
  public:
    static constexpr int kFirstLog2 = 10;
    static constexpr std::size_t kClasses = 26;  // up to 17 s, and longer
    using Counts = std::array<std::uint64_t, kClasses>;

    void add(std::chrono::nanoseconds time) {
        const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 1));
        const int log2 = std::max(static_cast<int>(std::bit_width(count - 1)), kFirstLog2);
        const auto number = std::min(static_cast<std::size_t>(log2 - kFirstLog2), kClasses - 1);
        counts_[number].fetch_add(1, std::memory_order_relaxed);
        total_.fetch_add(count, std::memory_order_relaxed);
    }
    Counts counts() const {
        Counts counts;
        std::transform(counts_.begin(), counts_.end(), counts.begin(),
                       [](const auto& count) { return count.load(std::memory_order_relaxed); });
        return counts;
    }
    std::uint64_t total_nanoseconds() const { return total_.load(std::memory_order_relaxed); }

  private:
    std::array<std::atomic<std::uint64_t>, kClasses> counts_{};
    std::atomic<std::uint64_t> total_ = 0;
};

// The time from receiving a request until it is answered or parked. Reads and other requests are
// counted apart, and each by whether they were answered here (C++) or forwarded (Python).
struct RequestTimes {
    LatencyHistogram reads_here, reads_forwarded, others_here, others_forwarded;

    void add(bool is_read, bool is_forwarded, std::chrono::nanoseconds time) {
        if (is_read) {
            (is_forwarded ? reads_forwarded : reads_here).add(time);
        } else {
            (is_forwarded ? others_forwarded : others_here).add(time);
        }
    }
};

}  // namespace gompfs

// Runs independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace gompfs {

// Calls work(index) for every index below count, on up to num_threads threads (this one included),
// in no particular order. work must not throw.
template <typename Work>
void parallel_for(std::size_t count, unsigned num_threads, Work&& work) {
    std::atomic<std::size_t> next{0};
    auto loop = [&] {
        for (std::size_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            work(index);
        }
    };
    std::vector<std::thread> threads;
    const std::size_t wanted = std::min<std::size_t>(std::max(num_threads, 1u), count);
    for (std::size_t started = 1; started < wanted; ++started) {
        threads.emplace_back(loop);
    }
    loop();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace gompfs

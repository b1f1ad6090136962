// What objects that threads share must know of forks. gompfs/forks.py is the Python side of it.
#pragma once

#include <pthread.h>

#include <atomic>

namespace gompfs {

// How often this process, its parent, and so on were forked off. Counted by a handler, as a process
// identifier would cost a system call.
inline std::atomic<unsigned> num_forks{0};
inline const int fork_counter_is_registered =
    pthread_atfork(nullptr, nullptr, [] { num_forks.fetch_add(1, std::memory_order_relaxed); });

// Remembers the process that made it.
class ThisProcess {
  public:
    // False in a child of the process: threads of the parent are gone there, but not the locks that
    // they held, nor what they had half changed.
    bool is_running() const { return num_forks.load(std::memory_order_relaxed) == made_at_; }

  private:
    const unsigned made_at_ = num_forks.load(std::memory_order_relaxed);
};

}  // namespace gompfs

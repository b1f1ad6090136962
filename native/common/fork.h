// What objects shared by threads need to know about forks. gompfs/forks.py is the Python
// counterpart.
#pragma once

#include <pthread.h>

#include <atomic>

namespace gompfs {

// The number of forks between the first process and this one. Counted by a fork handler, because
// asking for the process identifier would cost a system call.
inline std::atomic<unsigned> num_forks{0};
inline const int fork_counter_is_registered =
    pthread_atfork(nullptr, nullptr, [] { num_forks.fetch_add(1, std::memory_order_relaxed); });

// Remembers the process in which it was constructed.
class ThisProcess {
  public:
    // Returns false in a child of that process. The parent's threads do not exist in the child, but
    // the locks that they held are still locked, and data that they were changing is inconsistent.
    bool is_running() const { return num_forks.load(std::memory_order_relaxed) == made_at_; }

  private:
    const unsigned made_at_ = num_forks.load(std::memory_order_relaxed);
};

}  // namespace gompfs

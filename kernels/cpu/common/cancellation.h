// Stopping long work from another thread.
//
// Work that may take long asks throw_if_cancelled() now and then. It looks at the Cancellation of
// its thread: none as a rule, so that nothing is ever stopped; else the one that a
// CancellationScope has put there. parallel_for (parallel.h) passes it on to its threads. Whoever
// may stop the work keeps the Cancellation and calls cancel(); the work then ends by the exception
// Cancelled, which frees what it has like any other error.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace gompfs {

class Cancelled : public std::exception {
  public:
    const char* what() const noexcept override { return "cancelled"; }
};

class Cancellation {
  public:
    void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
    bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

    // Stops all work of the process, also that which has no Cancellation; for a program that ends.
    static Cancellation& of_process() {
        static Cancellation cancellation;
        return cancellation;
    }

  private:
    std::atomic<bool> is_cancelled_{false};
};

// What may stop the work of this thread; null outside of all scopes.
inline thread_local const Cancellation* current_cancellation = nullptr;

// Lets a Cancellation stop this thread's work until the end of the scope.
class CancellationScope {
  public:
    explicit CancellationScope(const Cancellation* cancellation) : outer_(current_cancellation) {
        current_cancellation = cancellation;
    }
    ~CancellationScope() { current_cancellation = outer_; }
    CancellationScope(const CancellationScope&) = delete;
    CancellationScope& operator=(const CancellationScope&) = delete;

  private:
    const Cancellation* const outer_;
};

inline void throw_if_cancelled() {
    const Cancellation* const cancellation = current_cancellation;
    if ((cancellation != nullptr && cancellation->is_cancelled()) ||
        Cancellation::of_process().is_cancelled()) {
        throw Cancelled();
    }
}

// The same for loops of short steps: call it in each step, and it looks in every 4,096th.
class CancellationPoint {
  public:
    void operator()() {
        if ((++num_steps_ & 0xfff) == 0) {
            throw_if_cancelled();
        }
    }

  private:
    unsigned num_steps_ = 0;
};

// Waits until condition() is true, or throws Cancelled.
template <typename Condition>
void wait_unless_cancelled(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                           Condition&& condition) {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
    while (!changed.wait_for(lock, kBetweenLooks, condition)) {
        throw_if_cancelled();
    }
}

}  // namespace gompfs

// Stopping long work from another thread.
//
// Work that may take long calls throw_if_cancelled() regularly. The function checks the
// Cancellation of its thread: usually there is none and nothing is ever stopped; a
// CancellationScope sets one. parallel_for (parallel.h) passes it on to its threads. A caller that
// may want to stop the work keeps the Cancellation and calls cancel(). The work then ends with the
// exception Cancelled, which releases its resources like any other exception.
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
    // What cancels `outer` cancels this one too. It must outlive this.
    explicit Cancellation(const Cancellation* outer = nullptr) : outer_(outer) {}

    void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
    bool is_cancelled() const {
        return is_cancelled_.load(std::memory_order_relaxed) ||
               (outer_ != nullptr && outer_->is_cancelled());
    }

    // The Cancellation that stops all work of the process, for a program that is about to exit.
    static Cancellation& of_process() {
        static Cancellation cancellation;
        return cancellation;
    }

  private:
    const Cancellation* const outer_;
    std::atomic<bool> is_cancelled_{false};
};

// The Cancellation that may stop the work of this thread; null outside of all scopes.
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

// Whether the work of this thread is to stop: for code that cannot throw.
inline bool is_cancelled() {
    const Cancellation* const cancellation = current_cancellation;
    return (cancellation != nullptr && cancellation->is_cancelled()) ||
           Cancellation::of_process().is_cancelled();
}

inline void throw_if_cancelled() {
    if (is_cancelled()) {
        throw Cancelled();
    }
}

// A check for loops of short steps: call it in every step, and it checks in every 4,096th.
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

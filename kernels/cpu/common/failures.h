// Work on several threads that may fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>

#include "common/parallel.h"

namespace gompfs {

// What pieces of work throw: the one counts that comes first in the order of the pieces.
class Failures {
  public:
    template <typename Work>
    void watch(std::size_t index, Work&& work) {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (index < index_) {
                index_ = index;
                error_ = std::current_exception();
            }
        }
    }

    // The work before this one may still fail, that after it is not needed any more.
    bool is_before(std::size_t index) const { return index_ < index; }

    void rethrow() const {
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

  private:
    std::mutex mutex_;
    std::atomic<std::size_t> index_{~std::size_t{0}};
    std::exception_ptr error_;
};

// parallel_for for work that throws; what is left when it does is not done.
template <typename Work>
void parallel_for_all(std::size_t count, unsigned num_threads, Work&& work) {
    Failures failures;
    parallel_for(count, num_threads, [&](std::size_t index) {
        if (!failures.is_before(index)) {
            failures.watch(index, [&] { work(index); });
        }
    });
    failures.rethrow();
}

}  // namespace gompfs

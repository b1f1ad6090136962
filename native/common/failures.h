// Work on several threads that may throw.
//
// If several pieces of work throw, the exception of the first piece (in the order of the pieces) is
// rethrown, so that errors do not depend on timing. Pieces after a failed one are skipped; pieces
// before it still run, as they may fail too.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>

#include "common/parallel.h"

namespace gompfs {

// Collects exceptions, and keeps that of the piece with the lowest index.
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

    // Whether a piece before this one has failed, so that this one is not needed any more.
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

// parallel_for for work that throws. After an exception, later pieces are skipped.
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

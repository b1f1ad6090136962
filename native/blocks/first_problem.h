// The first failure or exception of several threads that work on one read.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "blocks/read_failure.h"

namespace gompfs {

class FirstProblem {
  public:
    bool is_set() const { return is_set_.load(std::memory_order_relaxed); }

    void set(ReadFailure failure, std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        if (!is_set_.exchange(true)) {
            failure_ = failure;
            error_ = std::move(error);
        }
    }

    // Returns the failure, or throws the exception.
    ReadFailure get() const {
        if (error_) {
            std::rethrow_exception(error_);
        }
        return failure_;
    }

  private:
    std::mutex mutex_;
    std::atomic<bool> is_set_ = false;
    ReadFailure failure_;
    std::exception_ptr error_;
};

}  // namespace gompfs

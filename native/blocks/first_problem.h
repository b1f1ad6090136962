// The first failure or exception of several threads that work on one read.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
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

    // Runs a part of the work, and stores the failure that it returns, or the exception that it
    // throws if the system has no memory or refuses a call. Must not be used for other exceptions.
    template <typename Work>
    void watch(Work&& work) {
        try {
            if (const ReadFailure failure = work()) {
                set(failure, nullptr);
            }
        } catch (const std::bad_alloc&) {
            set({}, std::current_exception());
        } catch (const std::system_error&) {
            set({}, std::current_exception());
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

// Values that a function makes one after another, while the caller takes them.
//
// The function runs on a thread of its own, one value ahead of the caller. So it can be written as
// if it called the caller, and need not be able to stop in the middle and go on later.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/cancellation.h"
#include "common/fork.h"

namespace gompfs {

template <typename Value>
class Generator {
  public:
    // Hands a value on. Waits until the one before was taken; throws Cancelled if no more of them
    // are wanted.
    using Yield = std::function<void(Value)>;

    // Calls make(yield) on a new thread. Throws std::system_error if there can be no thread.
    explicit Generator(std::function<void(const Yield&)> make)
        : thread_([&shared = *shared_, make = std::move(make)] { shared.run(make); }) {}

    ~Generator() {
        if (!process_.is_running()) {  // a fork has left the thread behind
            thread_.detach();
            static_cast<void>(shared_.release());  // the thread may have locked the mutex
            return;
        }
        shared_->cancellation.cancel();
        thread_.join();
    }

    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;

    // The next value, or nothing after the last one. Throws Cancelled, and then what the function
    // has thrown.
    std::optional<Value> next() {
        std::unique_lock lock(shared_->mutex);
        wait_unless_cancelled(shared_->changed, lock,
                              [&] { return shared_->value || shared_->has_ended; });
        if (!shared_->value && shared_->error) {
            std::rethrow_exception(shared_->error);
        }
        shared_->changed.notify_all();
        return std::exchange(shared_->value, std::nullopt);
    }

  private:
    struct Shared {
        void run(const std::function<void(const Yield&)>& make) {
            const CancellationScope scope(&cancellation);
            std::exception_ptr failure;
            try {
                make([this](Value made) { add(std::move(made)); });
            } catch (...) {
                failure = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            error = failure;
            has_ended = true;
            changed.notify_all();
        }

        void add(Value made) {
            std::unique_lock lock(mutex);
            wait_unless_cancelled(changed, lock, [this] { return !value; });
            value = std::move(made);
            changed.notify_all();
        }

        Cancellation cancellation;
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<Value> value;  // that was made and not taken
        bool has_ended = false;
        std::exception_ptr error;
    };

    std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
    const ThisProcess process_;
    std::thread thread_;
};

}  // namespace gompfs

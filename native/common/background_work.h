// Work that goes on while the caller reads files or writes results.
//
// The caller pushes items; threads work on them, and the caller pops the results in the order of
// the items. Memory is bounded: push() waits while much is waiting for a thread.
//
// The threads are apart from those of WorkerPool (parallel.h). An item takes a thread for 20 ms to
// 0.4 s, more than a hundred times as long as a batch of blocks, and a worker of the pool that has
// begun an item cannot help with anything else until the item is done. So while a grammar is built,
// packing would encode blocks on one thread, and a mount that cuts text for statistics would decode
// a read's blocks on one thread. With threads of both kinds, the system's scheduler shares the
// processors between them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/cancellation.h"

namespace gompfs {

template <typename Item, typename Result>
class BackgroundWork {
  public:
    // What a thread does with an item.
    using Worker = std::function<Result(Item)>;

    // Every thread makes a worker of its own, which lives as long as the thread. push() waits while
    // the sizes of the items that wait for a thread are `capacity` or more.
    BackgroundWork(unsigned num_threads, std::size_t capacity, std::function<Worker()> make_worker)
        : capacity_(capacity), make_worker_(std::move(make_worker)) {
        try {
            for (unsigned number = 0; number < std::max(num_threads, 1u); ++number) {
                threads_.emplace_back([this] { work(); });
            }
        } catch (const std::system_error&) {
            if (threads_.empty()) {
                throw;
            }  // otherwise the system allows no more threads; the existing ones do the work
        }
    }

    // Drops the items that wait, and cancels those that are being worked on.
    ~BackgroundWork() {
        {
            const std::lock_guard lock(mutex_);
            is_ending_ = true;
        }
        cancellation_.cancel();
        changed_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }

    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;

    // Throws Cancelled, or the exception of an item that failed.
    void push(Item item, std::size_t size) {
        std::unique_lock lock(mutex_);
        wait(lock, [this] { return waiting_size_ < capacity_; });
        results_.emplace_back();
        waiting_.push_back({std::move(item), size, &results_.back()});
        waiting_size_ += size;
        changed_.notify_all();
    }

    // Waits for the result of the first item whose result has not been popped. Returns nothing if
    // there is no such item. Throws as push() does.
    std::optional<Result> pop() {
        std::unique_lock lock(mutex_);
        wait(lock, [this] { return results_.empty() || results_.front(); });
        if (results_.empty()) {
            return std::nullopt;
        }
        std::optional<Result> result(std::move(*results_.front()));
        results_.pop_front();
        return result;
    }

    // Pops all results.
    std::vector<Result> pop_all() {
        std::vector<Result> results;
        while (std::optional<Result> result = pop()) {
            results.push_back(std::move(*result));
        }
        return results;
    }

  private:
    struct Waiting {
        Item item;
        std::size_t size;
        std::optional<Result>* result;  // an element of results_
    };

    template <typename Condition>
    void wait(std::unique_lock<std::mutex>& lock, Condition&& condition) {
        wait_unless_cancelled(changed_, lock, [&] { return failure_ || condition(); });
        if (failure_) {
            std::rethrow_exception(failure_);
        }
    }

    void work() {
        const CancellationScope scope(&cancellation_);
        Worker worker;
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return !waiting_.empty() || is_ending_; });
            if (is_ending_) {
                return;
            }
            Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            waiting_size_ -= next.size;
            changed_.notify_all();
            lock.unlock();
            std::optional<Result> result;
            std::exception_ptr failure;
            try {
                worker = worker ? std::move(worker) : make_worker_();
                result = worker(std::move(next.item));
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            failure_ = failure_ ? failure_ : failure;
            *next.result = std::move(result);
            changed_.notify_all();
        }
    }

    Cancellation cancellation_;  // of threads_
    const std::size_t capacity_;
    const std::function<Worker()> make_worker_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Waiting> waiting_;
    std::size_t waiting_size_ = 0;
    std::deque<std::optional<Result>> results_;  // of the items that were pushed and not popped
    bool is_ending_ = false;
    std::exception_ptr failure_;  // of any item
    std::vector<std::thread> threads_;
};

}  // namespace gompfs

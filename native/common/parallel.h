// Runs independent pieces of work on several threads.
//
// Starting a thread takes as long as decoding a block, so the process keeps a pool of worker
// threads. The calling thread always takes part itself, which makes nested and concurrent calls
// safe: a call finishes even if no worker is free. Workers and callers spin for about 30 us before
// they sleep, because batches often follow each other quickly.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "common/cancellation.h"

namespace gompfs {

// Threads that wait for work. They are started when first needed and then kept. Any number of
// callers may share them.
class WorkerPool {
  public:
    // The pool of the process. Threads do not survive a fork, so the child of a fork gets a new
    // pool.
    static WorkerPool& shared();

    // Calls of loop(context) on several threads. It must stay where it is until finish() returns.
    struct Job {
        void (*loop)(void*);
        void* context;
        std::size_t num_wanted;  // number of threads that may still join
        std::atomic<std::size_t> num_working{0};
    };

    // Lets up to job.num_wanted threads of the pool execute a job while the caller goes on.
    void start(Job& job) {
        const std::size_t num_helpers = job.num_wanted;
        {
            const std::lock_guard lock(mutex_);
            try {
                for (; num_threads_ < num_helpers; ++num_threads_) {
                    std::thread([this] { work(); }).detach();
                }
            } catch (const std::system_error&) {
                // The system allows no more threads; the existing ones do the work.
            }
            jobs_.push_back(&job);
            ++num_jobs_;
        }
        for (std::size_t index = 0; index < num_helpers; ++index) {
            work_to_do_.notify_one();
        }
    }

    // Executes a job that was started on this thread, too. Returns when no thread is executing it
    // any more.
    void finish(Job& job) {
        job.loop(job.context);
        std::unique_lock lock(mutex_);
        num_jobs_ -= std::erase(jobs_, &job);
        lock.unlock();
        // The helpers are in their last piece of work; sleeping and waking up takes longer than
        // spinning until they finish.
        spin_until([&job] { return job.num_working == 0; });
        lock.lock();
        job_done_.wait(lock, [&job] { return job.num_working == 0; });
    }

  private:
    static constexpr int kRoundsBeforeSleep = 2000;  // about 30 us

    // Checks the condition repeatedly, for less time than falling asleep and waking up would take.
    template <typename Condition>
    static void spin_until(Condition&& condition) {
        for (int round = 0; round < kRoundsBeforeSleep && !condition(); ++round) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    }

    [[noreturn]] void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            lock.unlock();
            spin_until([this] { return num_jobs_ != 0; });
            lock.lock();
            work_to_do_.wait(lock, [this] { return !jobs_.empty(); });
            Job& job = *jobs_.front();
            ++job.num_working;
            if (--job.num_wanted == 0) {
                jobs_.pop_front();
                --num_jobs_;
            }
            lock.unlock();
            job.loop(job.context);
            lock.lock();
            if (--job.num_working == 0) {
                job_done_.notify_all();
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable work_to_do_;
    std::condition_variable job_done_;
    std::deque<Job*> jobs_;
    std::atomic<std::size_t> num_jobs_{0};  // number of elements of jobs_
    std::size_t num_threads_ = 0;
};

// Made when the module is loaded: if another thread were making it during a fork, the child could
// not finish it.
inline std::atomic<WorkerPool*> shared_worker_pool{new WorkerPool};
inline const int worker_pool_is_registered =
    pthread_atfork(nullptr, nullptr, [] { shared_worker_pool.store(new WorkerPool); });

inline WorkerPool& WorkerPool::shared() { return *shared_worker_pool.load(); }

// Calls work(index) for every index below `count` on up to num_threads threads: those of the pool
// from now on, and the caller of wait(). The order is undefined, except that index 0 is started
// first. If work throws, no further index is started. It may be cancelled as the caller's work.
template <typename Work>
class ParallelLoop {
  public:
    ParallelLoop(std::size_t count, unsigned num_threads, Work work)
        : count_(count), work_(std::move(work)), cancellation_(current_cancellation) {
        const std::size_t num_wanted = std::min<std::size_t>(std::max(num_threads, 1u), count);
        if (num_wanted > 1) {
            job_.num_wanted = num_wanted - 1;
            pool_ = &WorkerPool::shared();
            pool_->start(job_);
        }
    }

    // Stops before the next index. In the child of a fork, there are no threads to wait for.
    ~ParallelLoop() {
        next_.store(count_, std::memory_order_relaxed);
        if (pool_ == &WorkerPool::shared()) {
            finish();
        }
    }

    ParallelLoop(const ParallelLoop&) = delete;
    ParallelLoop& operator=(const ParallelLoop&) = delete;

    // Takes part, and returns when all is done. Throws the first exception of work, or Cancelled.
    void wait() {
        finish();
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

  private:
    void finish() {
        if (pool_ == nullptr) {
            run(this);
        } else if (!is_finished_) {
            pool_->finish(job_);
        }
        is_finished_ = true;
    }

    static void run(void* context) {
        ParallelLoop& loop = *static_cast<ParallelLoop*>(context);
        const CancellationScope scope(loop.cancellation_);
        try {
            for (std::size_t index;
                 (index = loop.next_.fetch_add(1, std::memory_order_relaxed)) < loop.count_;) {
                loop.work_(index);
                throw_if_cancelled();
            }
        } catch (...) {
            if (!loop.has_failed_.exchange(true)) {
                loop.error_ = std::current_exception();
            }
            loop.next_.store(loop.count_, std::memory_order_relaxed);
        }
    }

    const std::size_t count_;
    Work work_;
    const Cancellation* const cancellation_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> has_failed_{false};
    std::exception_ptr error_;  // the first; complete when all threads have left the job
    WorkerPool* pool_ = nullptr;
    WorkerPool::Job job_{&run, this, 0};
    bool is_finished_ = false;
};

// Calls work(index) for every index below `count` on up to num_threads threads, this one included;
// see ParallelLoop. Throws the first exception of work, or Cancelled.
template <typename Work>
void parallel_for(std::size_t count, unsigned num_threads, Work&& work) {
    ParallelLoop loop(count, num_threads, [&work](std::size_t index) { work(index); });
    loop.wait();
}

}  // namespace gompfs

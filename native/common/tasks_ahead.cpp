// Makes results before they are needed; see tasks_ahead.h.
#include "common/tasks_ahead.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr auto kLongWait = std::chrono::milliseconds(1);
constexpr std::size_t kFirstThreads = 2;
// Waking a thread takes about as long as reading a small file, so a thread is woken for several.
constexpr std::size_t kTasksPerWake = 16;

}  // namespace

TasksAhead::~TasksAhead() {
    {
        const std::scoped_lock lock(mutex_, space_->mutex);
        is_ending_ = space_->is_ending = true;
    }
    pushed_.notify_all();
    space_->changed.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void TasksAhead::push(std::shared_ptr<Task> task) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
    if (threads_.size() < kFirstThreads) {
        start_thread();
    }
    if (waiting_.size() % kTasksPerWake == 0) {
        pushed_.notify_one();
    }
}

bool TasksAhead::is_done(const Task& task) {
    const std::lock_guard lock(mutex_);
    return task.state_ == Task::State::done;
}

void TasksAhead::wait(Task& task) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    if (task.state_ == Task::State::waiting) {
        task.is_awaited_ = true;
        run(task, lock);
    } else if (task.state_ == Task::State::running) {
        {
            const std::lock_guard space_lock(space_->mutex);
            task.is_awaited_ = true;
        }
        space_->changed.notify_all();
        wait_unless_cancelled(done_, lock, [&] { return task.state_ == Task::State::done; });
    }
    if (std::chrono::steady_clock::now() - begin > kLongWait && !waiting_.empty()) {
        start_thread();
        pushed_.notify_all();
    }
}

// Called with mutex_ locked.
void TasksAhead::start_thread() {
    if (threads_.size() < options_.max_threads) {
        try {
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            // The system allows no more threads; the caller makes the results itself.
        }
    }
}

void TasksAhead::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        pushed_.wait(lock, [this] { return !waiting_.empty() || is_ending_; });
        if (is_ending_) {
            return;
        }
        const std::shared_ptr<Task> task = std::move(waiting_.front());
        waiting_.pop_front();
        if (task->state_ == Task::State::waiting) {  // otherwise the caller was faster
            run(*task, lock);
        }
    }
}

void TasksAhead::run(Task& task, std::unique_lock<std::mutex>& lock) {
    task.state_ = Task::State::running;
    lock.unlock();
    task.run(*this);
    lock.lock();
    task.state_ = Task::State::done;
    done_.notify_all();
}

TasksAhead::Held TasksAhead::take_space(const Task& task, std::uint64_t size) {
    std::unique_lock lock(space_->mutex);
    space_->changed.wait(lock, [&] {
        return space_->size + size <= options_.capacity || task.is_awaited_ || space_->is_ending;
    });
    if (space_->is_ending) {
        return nullptr;
    }
    space_->size += size;
    return {space_.get(), [space = space_, size](void*) {
                {
                    const std::lock_guard lock(space->mutex);
                    space->size -= size;
                }
                // Not all: with many threads and small results, waking them takes most of the time.
                // A thread that is passed over is woken when its task is awaited, if not before.
                space->changed.notify_one();
            }};
}

}  // namespace gompfs

// Results that are made before they are needed.
//
// A caller that goes through many things in order announces what it will need, and takes each
// result later, in any order. Threads work on what was announced, in order. A result that no thread
// has begun is made by the caller itself. Many threads help where the things are far away: whenever
// the caller waits long, another thread is started.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gompfs {

class TasksAhead {
  public:
    struct Options {
        std::uint64_t capacity;  // for results, in bytes
        unsigned max_threads;
    };

    // A result that was announced.
    class Task {
      public:
        virtual ~Task() = default;

      private:
        friend class TasksAhead;
        enum class State { waiting, running, done };
        // Must not throw.
        virtual void run(TasksAhead& tasks) = 0;

        State state_ = State::waiting;
        std::atomic<bool> is_awaited_ = false;
    };

    explicit TasksAhead(Options options) : options_(options) {}
    ~TasksAhead();
    TasksAhead(const TasksAhead&) = delete;
    TasksAhead& operator=(const TasksAhead&) = delete;

    void push(std::shared_ptr<Task> task);
    bool is_done(const Task& task);
    // Returns when the task is done. Throws Cancelled.
    void wait(Task& task);

    // A part of the capacity, which is given back when its last owner drops it. It may outlive the
    // object.
    using Held = std::shared_ptr<void>;
    // For a task that runs: waits until there is space for `size` bytes, or until the caller waits
    // for this very task. Returns null if the object ends.
    Held take_space(const Task& task, std::uint64_t size);

  private:
    struct Space {
        std::mutex mutex;
        std::condition_variable changed;
        std::uint64_t size = 0;  // that is taken
        bool is_ending = false;
    };

    void work();
    void run(Task& task, std::unique_lock<std::mutex>& lock);
    void start_thread();

    const Options options_;
    const std::shared_ptr<Space> space_ = std::make_shared<Space>();
    std::mutex mutex_;  // protects what follows, and the states of tasks
    std::condition_variable pushed_, done_;
    std::deque<std::shared_ptr<Task>> waiting_;
    std::vector<std::thread> threads_;
    bool is_ending_ = false;
};

}  // namespace gompfs

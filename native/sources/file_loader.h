// Opens, reads and lists files ahead of a thread that walks a tree.
//
// The walker announces what it will need, and takes each result later, in any order. Threads work
// on what was announced, in order. A result that no thread has begun is made by the walker itself.
// Many threads help where the files are far away: whenever the walker waits long, another thread is
// started.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sources/local_files.h"

namespace gompfs {

class FileLoader {
  public:
    struct Options {
        std::uint64_t max_file_size;  // larger files are only opened
        std::uint64_t capacity;       // bytes of content that is read ahead
        unsigned max_threads;
    };

    // A result that was announced.
    class Task {
      public:
        virtual ~Task() = default;

      private:
        friend class FileLoader;
        enum class State { waiting, running, done };
        virtual void run(FileLoader& loader) = 0;

        State state_ = State::waiting;
        std::atomic<bool> is_awaited_ = false;
    };
    class FileTask;
    class DirectoryTask;

    explicit FileLoader(Options options) : options_(options) {}
    ~FileLoader();
    FileLoader(const FileLoader&) = delete;
    FileLoader& operator=(const FileLoader&) = delete;

    // Announce a file or a directory, relative to an open directory, or to the current one if it is
    // null. With `device`, a directory of another file system counts as empty.
    std::shared_ptr<FileTask> load(std::shared_ptr<Descriptor> directory, std::string name);
    std::shared_ptr<DirectoryTask> list(std::shared_ptr<Descriptor> parent, std::string name,
                                        std::optional<dev_t> device);

    bool is_done(const Task& task);
    // Returns when the task is done. Throws Cancelled.
    void wait(Task& task);

  private:
    // Counts the content that is held. Content may outlive the loader.
    struct Room {
        std::mutex mutex;
        std::condition_variable changed;
        std::uint64_t size = 0;
        bool is_ending = false;
    };

    void push(std::shared_ptr<Task> task);
    void work();
    void run(Task& task, std::unique_lock<std::mutex>& lock);
    void start_thread();
    bool take_room(const Task& task, std::uint64_t size);

    const Options options_;
    const std::shared_ptr<Room> room_ = std::make_shared<Room>();
    std::mutex mutex_;  // protects what follows, and the states of tasks
    std::condition_variable pushed_, done_;
    std::deque<std::shared_ptr<Task>> waiting_;
    std::vector<std::thread> threads_;
    bool is_ending_ = false;
};

class FileLoader::FileTask : public Task {
  public:
    FileTask(std::shared_ptr<Descriptor> directory, std::string name)
        : directory_(std::move(directory)), name_(std::move(name)) {}

    LocalFile result;  // once the task is done

  private:
    void run(FileLoader& loader) override;

    std::shared_ptr<Descriptor> directory_;
    const std::string name_;
};

class FileLoader::DirectoryTask : public Task {
  public:
    DirectoryTask(std::shared_ptr<Descriptor> parent, std::string name, std::optional<dev_t> device)
        : parent_(std::move(parent)), name_(std::move(name)), device_(device) {}

    LocalDirectory result;  // once the task is done

  private:
    void run(FileLoader& loader) override;

    std::shared_ptr<Descriptor> parent_;
    const std::string name_;
    const std::optional<dev_t> device_;
};

}  // namespace gompfs

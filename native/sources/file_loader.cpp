// Opens, reads and lists files ahead; see file_loader.h.
//
// Memory is bounded by the content that is held: a thread that would exceed the limit waits until
// content was dropped, or until the walker waits for this very file.
#include "sources/file_loader.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>

#include "common/cancellation.h"

namespace gompfs {
namespace {

constexpr auto kLongWait = std::chrono::milliseconds(1);
constexpr std::size_t kFirstThreads = 2;
// Waking a thread takes about as long as reading a small file, so a thread is woken for several.
constexpr std::size_t kTasksPerWake = 16;

}  // namespace

FileLoader::~FileLoader() {
    {
        const std::scoped_lock lock(mutex_, room_->mutex);
        is_ending_ = room_->is_ending = true;
    }
    pushed_.notify_all();
    room_->changed.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

std::shared_ptr<FileLoader::FileTask> FileLoader::load(std::shared_ptr<Descriptor> directory,
                                                       std::string name) {
    auto task = std::make_shared<FileTask>(std::move(directory), std::move(name));
    push(task);
    return task;
}

std::shared_ptr<FileLoader::DirectoryTask> FileLoader::list(std::shared_ptr<Descriptor> parent,
                                                            std::string name,
                                                            std::optional<dev_t> device) {
    auto task = std::make_shared<DirectoryTask>(std::move(parent), std::move(name), device);
    push(task);
    return task;
}

void FileLoader::push(std::shared_ptr<Task> task) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
    if (threads_.size() < kFirstThreads) {
        start_thread();
    }
    if (waiting_.size() % kTasksPerWake == 0) {
        pushed_.notify_one();
    }
}

bool FileLoader::is_done(const Task& task) {
    const std::lock_guard lock(mutex_);
    return task.state_ == Task::State::done;
}

void FileLoader::wait(Task& task) {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    if (task.state_ == Task::State::waiting) {
        task.is_awaited_ = true;
        run(task, lock);
    } else if (task.state_ == Task::State::running) {
        {
            const std::lock_guard room_lock(room_->mutex);
            task.is_awaited_ = true;
        }
        room_->changed.notify_all();
        wait_unless_cancelled(done_, lock, [&] { return task.state_ == Task::State::done; });
    }
    if (std::chrono::steady_clock::now() - begin > kLongWait && !waiting_.empty()) {
        start_thread();
        pushed_.notify_all();
    }
}

// Called with mutex_ locked.
void FileLoader::start_thread() {
    if (threads_.size() < options_.max_threads) {
        try {
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            // The system allows no more threads; the walker makes the results itself.
        }
    }
}

void FileLoader::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        pushed_.wait(lock, [this] { return !waiting_.empty() || is_ending_; });
        if (is_ending_) {
            return;
        }
        const std::shared_ptr<Task> task = std::move(waiting_.front());
        waiting_.pop_front();
        if (task->state_ == Task::State::waiting) {  // otherwise the walker was faster
            run(*task, lock);
        }
    }
}

void FileLoader::run(Task& task, std::unique_lock<std::mutex>& lock) {
    task.state_ = Task::State::running;
    lock.unlock();
    task.run(*this);
    lock.lock();
    task.state_ = Task::State::done;
    done_.notify_all();
}

// Waits until content of `size` bytes may be held as well. Returns false if the loader ends.
bool FileLoader::take_room(const Task& task, std::uint64_t size) {
    std::unique_lock lock(room_->mutex);
    room_->changed.wait(lock, [&] {
        return room_->size + size <= options_.capacity || task.is_awaited_ || room_->is_ending;
    });
    room_->size += size;
    return !room_->is_ending;
}

void FileLoader::FileTask::run(FileLoader& loader) try {
    result = open_file(directory_ ? directory_->number() : AT_FDCWD, name_);
    directory_.reset();
    if (!can_be_read_whole(result, loader.options_.max_file_size)) {
        return;
    }
    const auto size = static_cast<std::uint64_t>(result.status.st_size);
    const std::shared_ptr<void> taken(nullptr, [room = loader.room_, size](void*) {
        {
            const std::lock_guard lock(room->mutex);
            room->size -= size;
        }
        room->changed.notify_all();
    });
    if (loader.take_room(*this, size)) {
        read_file(result);
    }
    if (FileContent* const content = result.content.get()) {
        // The room is free again when the content is dropped.
        result.content = {content, [content = result.content, taken](FileContent*) {}};
    }
} catch (const std::exception&) {
    result.error = ENOMEM;
}

void FileLoader::DirectoryTask::run(FileLoader&) try {
    result =
        list_directory(parent_ ? parent_->number() : AT_FDCWD, name_, parent_ == nullptr, device_);
    parent_.reset();
} catch (const std::exception&) {
    result.error = ENOMEM;
}

}  // namespace gompfs

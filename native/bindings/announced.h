// Results of TasksAhead, as Python holds and takes them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/held_bytes.h"
#include "bindings/interruptible.h"
#include "common/file_content.h"
#include "common/tasks_ahead.h"

namespace gompfs {

// Tasks that use a Python object, which they keep alive. Their threads may need the GIL, so it is
// released while they end.
inline std::shared_ptr<TasksAhead> make_tasks(TasksAhead::Options options,
                                              nanobind::object used = {}) {
    return {new TasksAhead(options), [used = std::move(used)](TasksAhead* tasks) {
                const nanobind::gil_scoped_release release;
                delete tasks;
            }};
}

// A result that was announced, and the tasks, which live as long.
template <typename Task>
struct Announced {
    std::shared_ptr<TasksAhead> tasks;
    std::shared_ptr<Task> task;

    Task& wait() const {
        if (!tasks->is_done(*task)) {
            run_interruptibly([&] { tasks->wait(*task); });
        }
        return *task;
    }
};

template <typename Task, typename... Arguments>
Announced<Task> announce(const std::shared_ptr<TasksAhead>& tasks, Arguments&&... arguments) {
    auto task = std::make_shared<Task>(std::forward<Arguments>(arguments)...);
    tasks->push(task);
    return {tasks, std::move(task)};
}

// Content as a memoryview, and its hash; twice None for null.
inline std::pair<std::optional<nanobind::memoryview>, std::optional<nanobind::bytes>> to_python(
    std::shared_ptr<FileContent> content) {
    if (!content) {
        return {};
    }
    const nanobind::bytes sha256 = to_bytes(content->sha256);
    auto& bytes = content->bytes;
    return {view_of({bytes.data(), bytes.size(), true, std::move(content)}), sha256};
}

}  // namespace gompfs

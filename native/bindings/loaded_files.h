// Files that were read, as Python passes them on.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "bindings/types.h"
#include "common/tasks_ahead.h"
#include "sources/known_contents.h"

namespace gompfs {

// Files of one directory, in the order of their names.
struct LoadedFiles {
    std::vector<LoadedFile> files;
    std::uint64_t size = 0;  // of all contents, also of those that were not read

    void append(LoadedFile file) {
        size += file.size();
        files.push_back(std::move(file));
    }

    // Returns the files from the one of a number on, and removes them here.
    LoadedFiles split_off(std::size_t number) {
        LoadedFiles rest;
        while (files.size() > number) {
            rest.files.push_back(std::move(files.back()));
            files.pop_back();
            rest.size += rest.files.back().size();
        }
        std::reverse(rest.files.begin(), rest.files.end());
        size -= rest.size;
        return rest;
    }
};

// Files of one directory, of which those from `next` on have not been taken.
template <typename Task>
struct AnnouncedFiles {
    std::shared_ptr<TasksAhead> tasks;
    std::vector<std::shared_ptr<Task>> files;
    std::size_t next = 0;

    bool all_taken() const { return next == files.size(); }

    // Takes the next files, up to the first for which `loaded` returns nothing, or until these are
    // at least kMaxRunSize bytes. Where the run ends depends on the files alone.
    template <typename Loaded>
    LoadedFiles take_run(const Loaded& loaded) {
        constexpr std::uint64_t kMaxRunSize = std::uint64_t{4} << 20;
        LoadedFiles run;
        const auto collect = [&] {
            while (!all_taken() && run.size < kMaxRunSize) {
                tasks->wait(*files[next]);
                std::optional<LoadedFile> file = loaded(*files[next]);
                if (!file) {
                    return;
                }
                run.append(*std::move(file));
                ++next;
            }
        };
        const auto is_done = [&](const auto& task) { return tasks->is_done(*task); };
        if (std::all_of(files.begin() + static_cast<std::ptrdiff_t>(next), files.end(), is_done)) {
            collect();
        } else {
            run_interruptibly(collect);
        }
        return run;
    }
};

using XattrDict = py::Dict<nanobind::bytes, nanobind::bytes>;

inline XattrDict dict_of(const Xattrs& xattrs) {
    XattrDict dict;
    for (const auto& [name, value] : xattrs) {
        dict[to_bytes(name)] = to_bytes(value);
    }
    return dict;
}

// (mode, uid, gid, seconds and nanoseconds of mtime, size, device, number)
using Status = py::Tuple<int, int, int, int, int, int, int, int>;

inline Status status_of(const struct stat& status) {
    return nanobind::make_tuple(status.st_mode, status.st_uid, status.st_gid, status.st_mtim.tv_sec,
                                status.st_mtim.tv_nsec, status.st_size, status.st_dev,
                                status.st_ino);
}

}  // namespace gompfs

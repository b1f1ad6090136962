// Files that were read, as Python passes them on.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "sources/known_contents.h"

namespace gompfs {

// Files of one directory, in the order of their names.
struct LoadedFiles {
    std::vector<LoadedFile> files;
    std::uint64_t size = 0;  // of all contents

    void append(LoadedFile file) {
        size += file.content->bytes.size();
        files.push_back(std::move(file));
    }

    // Returns the files from the one of a number on, and removes them here.
    LoadedFiles split_off(std::size_t number) {
        LoadedFiles rest;
        while (files.size() > number) {
            rest.files.push_back(std::move(files.back()));
            files.pop_back();
            rest.size += rest.files.back().content->bytes.size();
        }
        std::reverse(rest.files.begin(), rest.files.end());
        size -= rest.size;
        return rest;
    }
};

inline nanobind::dict dict_of(const Xattrs& xattrs) {
    nanobind::dict dict;
    for (const auto& [name, value] : xattrs) {
        dict[to_bytes(name)] = to_bytes(value);
    }
    return dict;
}

// (mode, uid, gid, seconds and nanoseconds of mtime, size, device, number)
inline nanobind::tuple status_of(const struct stat& status) {
    return nanobind::make_tuple(status.st_mode, status.st_uid, status.st_gid, status.st_mtim.tv_sec,
                                status.st_mtim.tv_nsec, status.st_size, status.st_dev,
                                status.st_ino);
}

}  // namespace gompfs

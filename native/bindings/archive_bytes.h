// Reads the bytes of an archive for C++: from a file descriptor, or with a function of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "bindings/buffer_view.h"
#include "bindings/types.h"
#include "common/descriptor.h"
#include "common/fetch.h"
#include "common/read_fully.h"

namespace gompfs {

// A descriptor, which the function that is made closes, or a function read(offset, size) -> bytes.
using ReadFunction = py::Callable<py::Buffer(std::uint64_t, std::uint64_t)>;
using ArchiveBytes = std::variant<int, ReadFunction>;

// Returns a function that reads bytes of an archive; fewer at its end. Any thread may call it, but
// not while it holds the GIL and another thread that reads waits for that lock.
inline Fetch make_fetch(const ArchiveBytes& file) {
    namespace nb = nanobind;
    if (const int* const descriptor = std::get_if<int>(&file)) {
        return [file = std::make_shared<const Descriptor>(*descriptor)](std::uint64_t offset,
                                                                        std::uint64_t size) {
            FetchedBytes bytes(size);
            bytes.resize(read_fully(file->number(), bytes, offset));
            return bytes;
        };
    }
    return [read = std::get<ReadFunction>(file)](std::uint64_t offset, std::uint64_t size) {
        const nb::gil_scoped_acquire acquire;
        const nb::object result = read(offset, size);
        const BufferView view(result, PyBUF_SIMPLE);
        const std::span<const std::uint8_t> bytes = view.bytes();
        return FetchedBytes(bytes.begin(), bytes.end());
    };
}

}  // namespace gompfs

// Reads the bytes of an archive for C++: from a file descriptor, or with a function of Python.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "bindings/buffer_view.h"
#include "common/read_fully.h"

namespace gompfs {

// An open file, which is closed when nothing refers to it any more.
class OpenFile {
  public:
    explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
    ~OpenFile() { ::close(descriptor_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t size) const {
        std::vector<std::uint8_t> bytes(size);
        bytes.resize(read_fully(descriptor_, bytes, offset));
        return bytes;
    }

  private:
    const int descriptor_;
};

// A descriptor, which the function that is made closes, or a function read(offset, size) -> bytes.
using ArchiveBytes = std::variant<int, nanobind::callable>;

// Returns a function that reads bytes of an archive; fewer at its end. Any thread may call it, but
// not while it holds the interpreter's lock and another thread that reads waits for that lock.
inline std::function<std::vector<std::uint8_t>(std::uint64_t, std::uint64_t)> make_fetch(
    const ArchiveBytes& file) {
    namespace nb = nanobind;
    if (const int* const descriptor = std::get_if<int>(&file)) {
        return [open = std::make_shared<OpenFile>(*descriptor)](
                   std::uint64_t offset, std::uint64_t size) { return open->read(offset, size); };
    }
    return [read = std::get<nb::callable>(file)](std::uint64_t offset, std::uint64_t size) {
        const nb::gil_scoped_acquire acquire;
        const nb::object result = read(offset, size);
        const BufferView view(result, PyBUF_SIMPLE);
        const std::span<const std::uint8_t> bytes = view.bytes();
        return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
    };
}

}  // namespace gompfs

// Implements temporary storage; see spill.h. Offsets are handed out by an atomic counter, so
// appends run in parallel. An append may straddle the end of the memory. The file has no name
// (O_TMPFILE, or it is unlinked at once), so nothing is left behind if the process dies.
#include "common/spill.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/cancellation.h"

namespace gompfs {
namespace {

// Bytes per system call: cancellation must not wait for a slow disk.
constexpr std::size_t kMaxStep = std::size_t{1} << 20;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int open_unnamed(const std::string& directory) {
    const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
        return file;
    }
    // Not all file systems support unnamed files.
    std::string name = directory + "/gompfs-XXXXXX";
    const int named = mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) {
        unlink(name.c_str());
    }
    return named;
}

}  // namespace

Spill::Spill(Options options)
    : options_(std::move(options)), memory_(new std::uint8_t[options_.in_memory]) {}

Spill::~Spill() {
    if (file_ >= 0) {
        close(file_);
    }
}

void Spill::open_file() {
    file_ = open_unnamed(options_.directory);
    if (file_ < 0) {
        fail("a temporary file cannot be created");
    }
}

void Spill::reserve(std::uint64_t size) {
    if ((reserved_ += size) > options_.limit) {
        throw std::length_error("they need more temporary space than is allowed");
    }
}

std::uint64_t Spill::append(std::span<const std::uint8_t> bytes) {
    reserve(bytes.size());
    const std::uint64_t offset = size_.fetch_add(bytes.size());
    const std::uint64_t in_memory = std::min<std::uint64_t>(
        bytes.size(), options_.in_memory - std::min(offset, options_.in_memory));
    std::copy_n(bytes.begin(), in_memory, memory_.get() + std::min(offset, options_.in_memory));
    if (in_memory < bytes.size()) {
        std::call_once(is_open_, [this] { open_file(); });
    }
    for (std::size_t done = in_memory; done < bytes.size();) {
        throw_if_cancelled();
        const std::size_t step = std::min(bytes.size() - done, kMaxStep);
        const ssize_t written =
            pwrite(file_, bytes.data() + done, step, static_cast<off_t>(offset + done));
        if (written < 0 && errno != EINTR) {
            fail("a temporary file cannot be written");
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
    return offset;
}

void Spill::read(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
    const std::uint64_t in_memory = std::min<std::uint64_t>(
        bytes.size(), options_.in_memory - std::min(offset, options_.in_memory));
    std::copy_n(memory_.get() + std::min(offset, options_.in_memory), in_memory, bytes.begin());
    for (std::size_t done = in_memory; done < bytes.size();) {
        throw_if_cancelled();
        const std::size_t step = std::min(bytes.size() - done, kMaxStep);
        const ssize_t got =
            pread(file_, bytes.data() + done, step, static_cast<off_t>(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = got == 0 ? EIO : errno;
            fail("a temporary file cannot be read");
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    }
}

}  // namespace gompfs

// Temporary storage for a task: memory first, then a temporary file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace gompfs {

// Keeps the first bytes in memory and the rest in an unnamed file. Safe for any number of threads.
class Spill {
  public:
    struct Options {
        std::string directory;    // of the file
        std::uint64_t in_memory;  // number of bytes kept in memory
        std::uint64_t limit;      // total number of bytes allowed
    };
    explicit Spill(Options options);
    ~Spill();
    Spill(const Spill&) = delete;
    Spill& operator=(const Spill&) = delete;

    // Stores bytes and returns their offset. Throws std::length_error above the limit,
    // std::system_error if the disk is full.
    std::uint64_t append(std::span<const std::uint8_t> bytes);
    // Reads bytes that one or more appends stored.
    void read(std::uint64_t offset, std::span<std::uint8_t> bytes) const;

    // Counts memory that the caller uses towards the limit. Throws std::length_error above it.
    void reserve(std::uint64_t size);

  private:
    void open_file();

    const Options options_;
    std::atomic<std::uint64_t> size_{0}, reserved_{0};
    std::unique_ptr<std::uint8_t[]> memory_;
    std::once_flag is_open_;
    int file_ = -1;
};

}  // namespace gompfs

// Bytes that are put aside while a task is at work.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace gompfs {

// The first ones are kept in memory, more in a file without a name. Any number of threads may use
// it at once.
class Spill {
  public:
    struct Place {
        std::string directory;    // of the file
        std::uint64_t in_memory;  // bytes that are kept in memory
        std::uint64_t limit;      // more bytes are refused
    };
    explicit Spill(Place place);
    ~Spill();
    Spill(const Spill&) = delete;
    Spill& operator=(const Spill&) = delete;

    // Keeps bytes, and says where. Throws std::length_error beyond the limit, std::system_error
    // where the disk is full.
    std::uint64_t append(std::span<const std::uint8_t> bytes);
    // Bytes of one append or more.
    void read(std::uint64_t place, std::span<std::uint8_t> bytes) const;

    // Counts bytes of memory to the limit; throws std::length_error beyond it.
    void reserve(std::uint64_t size);

  private:
    void open_file();

    const Place place_;
    std::atomic<std::uint64_t> size_{0}, reserved_{0};
    std::unique_ptr<std::uint8_t[]> memory_;
    std::once_flag is_open_;
    int file_ = -1;
};

}  // namespace gompfs

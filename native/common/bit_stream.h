// Bit streams in little-endian order: the first bit of a stream is the lowest bit of its first
// byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/little_endian.h"

namespace gompfs {

// The lowest `count` bits of `word`; count must be below 64.
[[gnu::always_inline]] inline std::uint64_t low_bits(std::uint64_t word, std::uint64_t count) {
    return word & ((std::uint64_t{1} << count) - 1);
}

// Writes bits to the caller's memory, which must have space for kSlack bytes after the last one.
class BitWriter {
  public:
    static constexpr std::size_t kSlack = 8;

    explicit BitWriter(std::uint8_t* bytes = nullptr) : start_(bytes), next_(bytes) {}

    // Appends the lowest `count` bits of `value`; the other bits must be 0. count is at most 56.
    void put(std::uint64_t value, int count) {
        pending_ |= value << num_pending_;
        num_pending_ += count;
        std::memcpy(next_, &pending_, sizeof pending_);
        next_ += num_pending_ >> 3;
        pending_ >>= num_pending_ & ~7;
        num_pending_ &= 7;
    }

    void put_all(const BitWriter& other) {
        const std::uint8_t* bytes = other.start_;
        for (; bytes + 4 <= other.next_; bytes += 4) {
            put(load<std::uint32_t>(bytes), 32);
        }
        for (; bytes < other.next_; ++bytes) {
            put(*bytes, 8);
        }
        put(other.pending_, other.num_pending_);
    }

    std::size_t num_bits() const {
        return static_cast<std::size_t>(next_ - start_) * 8 + num_pending_;
    }
    std::size_t num_bytes() const { return (num_bits() + 7) / 8; }

  private:
    std::uint8_t* start_;
    std::uint8_t* next_;
    std::uint64_t pending_ = 0;
    int num_pending_ = 0;
};

// Reads bits and never reads past the end of its bytes: bits after the end are 0, and overrun()
// reports it.
class BitReader {
  public:
    BitReader(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), num_bits_(size * 8) {}

    // Returns the next `count` bits, at most 32.
    std::uint32_t take(int count) {
        const auto value = static_cast<std::uint32_t>(low_bits(window() >> (position_ & 7), count));
        position_ += count;
        return value;
    }

    // Goes back by `count` bits.
    void give_back(int count) { position_ -= count; }
    bool overrun() const { return position_ > num_bits_; }
    std::size_t num_bytes_used() const { return (position_ + 7) / 8; }

  private:
    std::uint64_t window() const {
        const std::size_t first = position_ >> 3;
        const std::size_t size = num_bits_ >> 3;
        if (first + sizeof(std::uint64_t) <= size) {
            return load<std::uint64_t>(bytes_ + first);
        }
        std::uint64_t result = 0;
        std::memcpy(&result, bytes_ + std::min(first, size), size - std::min(first, size));
        return result;
    }

    const std::uint8_t* bytes_;
    std::size_t num_bits_;
    std::size_t position_ = 0;
};

}  // namespace gompfs

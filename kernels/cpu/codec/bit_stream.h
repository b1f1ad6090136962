// Bits in little-endian order: the first bit of a stream is the lowest bit of its first byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/little_endian.h"

namespace gompfs {

// The lowest count bits of word; count is below 64.
[[gnu::always_inline]] inline std::uint64_t low_bits(std::uint64_t word, std::uint64_t count) {
    return word & ((std::uint64_t{1} << count) - 1);
}

class BitWriter {
   public:
    void clear() {
        bytes_.clear();
        pending_ = 0;
        num_pending_ = 0;
    }

    // Appends the lowest count bits of value, which has no others; count is at most 32.
    void put(std::uint32_t value, int count) {
        pending_ |= static_cast<std::uint64_t>(value) << num_pending_;
        num_pending_ += count;
        if (num_pending_ >= 32) {
            append(bytes_, static_cast<std::uint32_t>(pending_));
            pending_ >>= 32;
            num_pending_ -= 32;
        }
    }

    std::size_t num_bits() const { return bytes_.size() * 8 + num_pending_; }

    void put_all(const BitWriter& other) {
        for (std::size_t at = 0; at < other.bytes_.size(); at += 4) {
            put(load<std::uint32_t>(other.bytes_.data() + at), 32);
        }
        put(static_cast<std::uint32_t>(other.pending_), other.num_pending_);
    }

    // The bits as bytes, the last one filled up with zeros.
    std::vector<std::uint8_t> finish() const {
        std::vector<std::uint8_t> bytes = bytes_;
        for (int written = 0; written < num_pending_; written += 8) {
            bytes.push_back(static_cast<std::uint8_t>(pending_ >> written));
        }
        return bytes;
    }

   private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t pending_ = 0;
    int num_pending_ = 0;
};

// Reads bits without passing the end of its bytes: bits behind it are zeros, and overrun() tells.
class BitReader {
   public:
    BitReader(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), num_bits_(size * 8) {}

    // The next count bits, at most 32.
    std::uint32_t take(int count) {
        const auto value = static_cast<std::uint32_t>(low_bits(window() >> (position_ & 7), count));
        position_ += count;
        return value;
    }

    // Steps back over the last count bits.
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

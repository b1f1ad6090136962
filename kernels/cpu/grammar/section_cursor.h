// Reading a grammar section from front to back, every number checked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "common/little_endian.h"

namespace gompfs {

[[noreturn]] inline void fail_section(const char* what) { throw std::invalid_argument(what); }

// All of it throws std::invalid_argument where the bytes end too early or make no sense.
class SectionCursor {
  public:
    using Bytes = std::span<const std::uint8_t>;

    explicit SectionCursor(Bytes bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
    bool at_end() const { return next_ == end_; }
    const std::uint8_t* place() const { return next_; }

    Bytes take(std::uint64_t size) {
        if (size > left()) {
            fail_section("it ends too early");
        }
        next_ += size;
        return {next_ - size, static_cast<std::size_t>(size)};
    }

    template <typename Integer>
    Integer fixed() {
        return load<Integer>(take(sizeof(Integer)).data());
    }

    // Most numbers have up to four bytes; how many cannot be foretold, so there is no branch.
    std::uint64_t number() {
        if (left() >= 4) [[likely]] {
            const std::uint32_t bytes = load<std::uint32_t>(next_);
            const std::uint32_t ends = ~bytes & 0x80808080u;
            if (ends != 0) [[likely]] {
                const int last_bit = std::countr_zero(ends);
                const std::uint32_t value = (bytes & 0x7f) | (bytes >> 1 & 0x3f80) |
                                            (bytes >> 2 & 0x1fc000) | (bytes >> 3 & 0xfe00000);
                next_ += last_bit / 8 + 1;
                return value & (~0u >> (31 - last_bit) >> (last_bit / 8 + 1));
            }
        }
        return long_number();
    }

    std::uint64_t number_behind(std::uint64_t from) {
        const std::uint64_t coded = number();
        return from + (coded >> 1 ^ (~(coded & 1) + 1));
    }

    // How many items follow, of which each takes at least one byte.
    std::uint64_t count() {
        const std::uint64_t value = number();
        if (value > left()) {
            fail_section("it counts more items than it can hold");
        }
        return value;
    }

    // Goes on behind some numbers, whose bytes it gives, without looking at their values. Numbers
    // end in a byte without the highest bit, and 64 bytes hold no more than 64 ends.
    Bytes skip_numbers(std::uint64_t count) {
        const std::uint8_t* const start = next_;
        for (; count >= 64 && left() >= 64; next_ += 64) {
            for (std::size_t at = 0; at < 64; at += 8) {
                const std::uint64_t ends = ~load<std::uint64_t>(next_ + at) >> 7 & kLowBits;
                count -= ends * kLowBits >> 56;
            }
        }
        for (; count != 0; ++next_) {
            if (next_ == end_) {
                fail_section("it ends too early");
            }
            count -= *next_ < 0x80;
        }
        return {start, next_};
    }

  private:
    std::uint64_t long_number() {
        std::uint64_t value = 0;
        for (int shift = 0; next_ != end_ && shift < 63; shift += 7) {
            const std::uint8_t byte = *next_++;
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) {
                return value;
            }
        }
        fail_section("a number in it is cut off or too long");
    }

    static constexpr std::uint64_t kLowBits = 0x0101010101010101u;

    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

}  // namespace gompfs

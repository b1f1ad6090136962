// Reads the numbers of a grammar section from front to back, and checks every one.
//
// A section may come from anybody. The cursor never reads past its end, refuses counts that are
// larger than the bytes left (so that memory is bounded by the size of the section), and refuses
// numbers that do not fit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "common/little_endian.h"

namespace gompfs {

[[noreturn]] inline void fail_section(const char* what) { throw std::invalid_argument(what); }

// All functions throw std::invalid_argument if the bytes end too early or are not valid.
class SectionCursor {
  public:
    using Bytes = std::span<const std::uint8_t>;

    explicit SectionCursor(Bytes bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
    bool at_end() const { return next_ == end_; }
    const std::uint8_t* next() const { return next_; }

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

    std::uint64_t number() {
        // Most numbers have up to three bytes.
        if (left() >= 3) {
            std::uint64_t value = next_[0];
            if (value < 0x80) {
                next_ += 1;
                return value;
            }
            value = (value & 0x7f) | std::uint64_t{next_[1]} << 7;
            if (next_[1] < 0x80) {
                next_ += 2;
                return value;
            }
            value = (value & 0x3fff) | std::uint64_t{next_[2]} << 14;
            if (next_[2] < 0x80) {
                next_ += 3;
                return value;
            }
        }
        return long_number();
    }

    // Reads numbers that must be below 2^32. The start of a number depends on the length of the
    // number before, which is hard to predict; decoding two numbers from one 64-bit load is twice
    // as fast as one after another.
    void numbers(std::span<std::uint32_t> out) {
        std::size_t at = 0;
        while (at + 2 <= out.size() && left() >= 8) {
            const auto bytes = load<std::uint64_t>(next_);
            const std::uint64_t ends = ~bytes & kHighBits, later_ends = ends & (ends - 1);
            const int first = std::countr_zero(ends), second = std::countr_zero(later_ends);
            if (first > 31 || second - first > 32) [[unlikely]] {
                out[at++] = short_number();
                continue;
            }
            out[at] = join_bits(bytes, first + 1);
            out[at + 1] = join_bits(bytes >> (first + 1), second - first);
            at += 2;
            next_ += second / 8 + 1;
        }
        for (; at < out.size(); ++at) {
            out[at] = short_number();
        }
    }

    // Reads the number of items that follow; each item takes at least one byte.
    std::uint64_t count() {
        const std::uint64_t value = number();
        if (value > left()) {
            fail_section("it counts more items than it can hold");
        }
        return value;
    }

    // Skips `count` numbers without decoding them, and returns their bytes. The last byte of a
    // number has its highest bit clear; 64 bytes contain at most 64 last bytes.
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
    // The number in the lowest num_bits bits of a word, at most 32.
    static std::uint32_t join_bits(std::uint64_t word, int num_bits) {
        const auto bytes = static_cast<std::uint32_t>(word & ((std::uint64_t{1} << num_bits) - 1));
        return (bytes & 0x7f) | (bytes >> 1 & 0x3f80) | (bytes >> 2 & 0x1fc000) |
               (bytes >> 3 & 0xfe00000);
    }

    std::uint32_t short_number() {
        const std::uint64_t value = number();
        if (value >> 32 != 0) {
            fail_section("a number in it is cut off or too long");
        }
        return static_cast<std::uint32_t>(value);
    }

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
    static constexpr std::uint64_t kHighBits = 0x8080808080808080u;

    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

}  // namespace gompfs

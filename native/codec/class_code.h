// Canonical codes of number classes, for gompresso-tadoc (docs/format.md).
//
// A number is coded as the codeword of its class and the extra bits of the class. There are two
// classes per octave, so a code with few codewords fits numbers of any distribution.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/bit_stream.h"
#include "shared/format_constants.h"

namespace gompfs {

constexpr int class_of(std::uint32_t number) {
    const int octave = std::bit_width(number + 2) - 1;
    return 2 * (octave - 1) + static_cast<int>((number + 2) >> (octave - 1) & 1);
}

constexpr int class_extra_bits(int number_class) { return number_class / 2; }

constexpr std::uint32_t class_base(int number_class) {
    return ((2u + (number_class & 1)) << (number_class / 2)) - 2;
}

// A code that is being built: count the numbers or classes, then build, then ask for bits.
class ClassEncoder {
  public:
    void count_number(std::uint32_t number) { ++counts_[class_of(number)]; }
    void count_class(int number_class) { ++counts_[number_class]; }
    // No codeword gets longer than max_bits.
    void build(int max_bits);

    // The codeword of a class and the number of its bits.
    std::pair<std::uint64_t, int> bits_of_class(int number_class) const {
        return {codewords_[number_class], lengths_[number_class]};
    }
    std::pair<std::uint64_t, int> bits_of_number(std::uint32_t number) const {
        const int number_class = class_of(number);
        const int length = lengths_[number_class];
        return {
            codewords_[number_class] | std::uint64_t{number - class_base(number_class)} << length,
            length + class_extra_bits(number_class)};
    }

    void write_lengths(BitWriter& out) const;

    // The most bytes that write_lengths writes.
    static constexpr std::size_t kMaxBytes =
        (kNumClassLengthsBits + kClassLengthBits * kNumClasses + 7) / 8;

  private:
    std::array<std::uint32_t, kNumClasses> counts_{};
    std::array<std::uint8_t, kNumClasses> lengths_{};
    std::array<std::uint16_t, kNumClasses> codewords_{};
};

// A decode table, indexed by the next bits of a stream.
struct ClassTable {
    // From the lowest bit, one byte each: codeword bits, extra bits, their sum, the class. The
    // highest 32 bits are the base of the class.
    std::vector<std::uint64_t> entries;
    // For codewords of at most kShortBits bits: the class by the next kShortBits bits, and the
    // length of the codeword by class.
    static constexpr int kShortBits = 8;
    std::array<std::uint8_t, 1 << kShortBits> short_classes;
    std::array<std::uint8_t, 64> short_lengths;
    int index_bits = 0;     // the length of the longest codeword
    int max_item_bits = 0;  // the most bits of a codeword and its extra bits
    bool is_empty = true;

    // Reads the lengths of a code. Returns false if they do not form a code.
    bool read(BitReader& in);

  private:
    void fill_short_tables(std::span<const std::uint8_t> lengths);
};

}  // namespace gompfs

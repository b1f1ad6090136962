// Builds class codes and their decode tables; see class_code.h.
//
// The codewords are assigned as in gompresso-bit (huffman.h). A decode table has as many entries as
// the longest codeword needs: most codes are short, and the head of a part has thirteen of them.
#include "codec/class_code.h"

#include <algorithm>
#include <span>

#include "codec/huffman.h"

namespace gompfs {

void ClassEncoder::build(int max_bits) {
    limited_code_lengths(counts_, max_bits, lengths_.data());
    canonical_codewords(lengths_, codewords_.data());
}

void ClassEncoder::write_lengths(BitWriter& out) const {
    std::size_t count = lengths_.size();
    while (count != 0 && lengths_[count - 1] == 0) {
        --count;
    }
    out.put(count, kNumClassLengthsBits);
    for (std::size_t index = 0; index < count; ++index) {
        out.put(lengths_[index], kClassLengthBits);
    }
}

bool ClassTable::read(BitReader& in) {
    std::array<std::uint8_t, kNumClasses> lengths{};
    const std::size_t count = in.take(kNumClassLengthsBits);
    if (count > lengths.size()) {
        return false;
    }
    for (std::size_t index = 0; index < count; ++index) {
        lengths[index] = static_cast<std::uint8_t>(in.take(kClassLengthBits));
    }
    if (in.overrun()) {
        return false;
    }
    index_bits = *std::max_element(lengths.begin(), lengths.end());
    is_empty = index_bits == 0;
    entries.assign(std::size_t{1} << index_bits, 0);
    if (is_empty) {
        return true;
    }
    const SortedSymbols sorted = sort_by_codeword(lengths, kMaxClassBits);
    if (!sorted.decodable) {
        return false;
    }
    std::array<std::uint16_t, kNumClasses> codewords{};
    canonical_codewords(lengths, codewords.data());
    for (std::size_t index = 0; index < sorted.count; ++index) {
        const int number_class = sorted.symbols[index];
        const std::uint64_t length = lengths[number_class], extra = class_extra_bits(number_class);
        const std::uint64_t entry = length | extra << 8 | (length + extra) << 16 |
                                    static_cast<std::uint64_t>(number_class) << 24 |
                                    std::uint64_t{class_base(number_class)} << 32;
        // A single codeword stands for both values of its bit.
        const std::size_t step = sorted.count == 1 ? 1 : std::size_t{1} << length;
        for (std::size_t at = codewords[number_class]; at < entries.size(); at += step) {
            entries[at] = entry;
        }
    }
    return true;
}

}  // namespace gompfs

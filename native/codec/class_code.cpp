// Builds class codes and their decode tables; see class_code.h.
//
// The codewords are assigned as in gompresso-bit (huffman.h). A decode table has as many entries as
// the longest codeword needs: most codes are short, and the head of a part has thirteen of them.
// The vector of a table keeps its memory when the next code is read.
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
    std::array<std::uint8_t, kNumClasses> all_lengths;
    const std::size_t count = in.take(kNumClassLengthsBits);
    if (count > all_lengths.size()) {
        return false;
    }
    const std::span<std::uint8_t> lengths(all_lengths.data(), count);
    index_bits = max_item_bits = 0;
    for (std::size_t index = 0; index < count; ++index) {
        const int length = static_cast<int>(in.take(kClassLengthBits));
        lengths[index] = static_cast<std::uint8_t>(length);
        if (length != 0) {
            index_bits = std::max(index_bits, length);
            max_item_bits =
                std::max(max_item_bits, length + class_extra_bits(static_cast<int>(index)));
        }
    }
    if (in.overrun() || index_bits > kMaxClassBits) {
        return false;
    }
    is_empty = index_bits == 0;
    entries.resize(std::size_t{1} << index_bits);
    const bool is_code =
        build_decode_table(lengths, std::span(entries), [&](std::size_t number_class) {
            const auto index = static_cast<int>(number_class);
            const std::uint64_t length = lengths[number_class], extra = class_extra_bits(index);
            return length | extra << 8 | (length + extra) << 16 |
                   std::uint64_t{number_class} << 24 | std::uint64_t{class_base(index)} << 32;
        });
    if (is_code && index_bits <= kShortBits) {
        fill_short_tables(lengths);
    }
    return is_code;
}

void ClassTable::fill_short_tables(std::span<const std::uint8_t> lengths) {
    std::copy(lengths.begin(), lengths.end(), short_lengths.begin());
    std::uint8_t* const classes = short_classes.data();
    for (std::size_t index = 0; index < entries.size(); ++index) {
        classes[index] = static_cast<std::uint8_t>(entries[index] >> 24);
    }
    for (std::size_t filled = entries.size(); filled < short_classes.size(); filled *= 2) {
        std::copy_n(classes, filled, classes + filled);
    }
}

}  // namespace gompfs

// Decodes rows of items; see item_rows.h.
//
// One thread visits the sub-blocks in turn. Neighbouring visits do not depend on each other, so the
// processor executes them in parallel. A visit loads 64 bits, of which 57 or more belong to the
// sub-block from its position on, and decodes as many items as these are sure to hold: the items of
// up to four rows. Positions are compared with the end of the stream once for these rows; until
// then a visit reads at most the 8 bytes after the stream.
//
// Whole rows of a code with short codewords are decoded with AVX-512, if the processor has it
// (item_rows_avx512.h). That gives the same results for all input.
//
// Raw pointers and no std::min or std::max: in a target clone, GCC does not inline functions of the
// library.
#include "codec/item_rows.h"

#include "codec/item_rows_avx512.h"
#include "common/copy.h"

namespace gompfs {
namespace {

// As many rows of classes as a window holds.
constexpr std::size_t kClassRows = 4;
static_assert(kClassRows * kMaxClassBits <= kItemWindowBits);

// Decodes kRows rows of numbers, or a part of one row. Returns whether all positions are in the
// stream.
template <std::size_t kRows>
[[gnu::always_inline]] inline bool decode_number_rows(const ItemStream& stream,
                                                      const ClassTable& code, std::size_t num_lanes,
                                                      std::uint32_t* numbers) {
    const std::uint64_t* const entries = code.entries.data();
    const std::uint64_t index_mask = (std::uint64_t{1} << code.index_bits) - 1;
    std::uint32_t* const positions = stream.positions;
    std::uint32_t overruns = 0;  // the highest bit is set if a position is after the end
    for (std::size_t lane = 0; lane < num_lanes; ++lane) {
        std::uint32_t position = positions[lane];
        std::uint64_t window =
            load<std::uint64_t>(stream.bytes + (position >> 3)) >> (position & 7);
        for (std::size_t row = 0; row < kRows; ++row) {
            const std::uint64_t entry = entries[window & index_mask];
            numbers[row * kNumSubBlocks + lane] =
                static_cast<std::uint32_t>(entry >> 32) +
                static_cast<std::uint32_t>(low_bits(window >> (entry & 63), entry >> 8 & 63));
            const std::uint64_t used = entry >> 16 & 255;
            window >>= used & 63;
            position += static_cast<std::uint32_t>(used);
        }
        positions[lane] = position;
        overruns |= stream.num_bits - position;
    }
    return overruns >> 31 == 0;
}

template <std::size_t kRows>
[[gnu::always_inline]] inline bool decode_class_rows(const ItemStream& stream,
                                                     const ClassTable& code, std::size_t num_lanes,
                                                     std::uint8_t* classes) {
    const std::uint64_t* const entries = code.entries.data();
    const std::uint64_t index_mask = (std::uint64_t{1} << code.index_bits) - 1;
    std::uint32_t* const positions = stream.positions;
    std::uint32_t overruns = 0;
    for (std::size_t lane = 0; lane < num_lanes; ++lane) {
        std::uint32_t position = positions[lane];
        std::uint64_t window =
            load<std::uint64_t>(stream.bytes + (position >> 3)) >> (position & 7);
        for (std::size_t row = 0; row < kRows; ++row) {
            const std::uint64_t entry = entries[window & index_mask];
            classes[row * kNumSubBlocks + lane] = static_cast<std::uint8_t>(entry >> 24);
            window >>= entry & 63;
            position += static_cast<std::uint32_t>(entry & 63);
        }
        positions[lane] = position;
        overruns |= stream.num_bits - position;
    }
    return overruns >> 31 == 0;
}

}  // namespace

GOMPFS_TARGET_CLONES bool decode_numbers_portable(const ItemStream& stream, const ClassTable& code,
                                                  std::span<std::uint32_t> numbers) {
    std::uint32_t* const out = numbers.data();
    const std::size_t count = numbers.size();
    std::size_t first = 0;
    if (3 * code.max_item_bits <= kItemWindowBits) {
        for (; count - first >= 3 * kNumSubBlocks; first += 3 * kNumSubBlocks) {
            if (!decode_number_rows<3>(stream, code, kNumSubBlocks, out + first)) {
                return false;
            }
        }
    }
    if (2 * code.max_item_bits <= kItemWindowBits) {
        for (; count - first >= 2 * kNumSubBlocks; first += 2 * kNumSubBlocks) {
            if (!decode_number_rows<2>(stream, code, kNumSubBlocks, out + first)) {
                return false;
            }
        }
    }
    for (; count - first >= kNumSubBlocks; first += kNumSubBlocks) {
        if (!decode_number_rows<1>(stream, code, kNumSubBlocks, out + first)) {
            return false;
        }
    }
    return decode_number_rows<1>(stream, code, count - first, out + first);
}

GOMPFS_TARGET_CLONES bool decode_classes_portable(const ItemStream& stream, const ClassTable& code,
                                                  std::span<std::uint8_t> classes) {
    std::uint8_t* const out = classes.data();
    const std::size_t count = classes.size();
    std::size_t first = 0;
    for (; count - first >= kClassRows * kNumSubBlocks; first += kClassRows * kNumSubBlocks) {
        if (!decode_class_rows<kClassRows>(stream, code, kNumSubBlocks, out + first)) {
            return false;
        }
    }
    for (; count - first >= kNumSubBlocks; first += kNumSubBlocks) {
        if (!decode_class_rows<1>(stream, code, kNumSubBlocks, out + first)) {
            return false;
        }
    }
    return decode_class_rows<1>(stream, code, count - first, out + first);
}

namespace {

// Decodes whole rows with `of_rows` if the processor and the code allow it, and all other items
// with `portable`.
template <typename Item>
bool decode_items(const ItemStream& stream, const ClassTable& code, std::span<Item> items,
                  bool (*of_rows)(const ItemStream&, const ClassTable&, std::span<Item>),
                  bool (*portable)(const ItemStream&, const ClassTable&, std::span<Item>)) {
    if (!can_use_avx512(code)) {
        return portable(stream, code, items);
    }
    const std::size_t whole = items.size() / kNumSubBlocks * kNumSubBlocks;
    return of_rows(stream, code, items.first(whole)) &&
           portable(stream, code, items.subspan(whole));
}

}  // namespace

bool decode_numbers(const ItemStream& stream, const ClassTable& code,
                    std::span<std::uint32_t> numbers) {
    return decode_items(stream, code, numbers, decode_number_rows_avx512, decode_numbers_portable);
}

bool decode_classes(const ItemStream& stream, const ClassTable& code,
                    std::span<std::uint8_t> classes) {
    return decode_items(stream, code, classes, decode_class_rows_avx512, decode_classes_portable);
}

GOMPFS_TARGET_CLONES std::uint32_t highest_of(const std::uint32_t* numbers, std::size_t count) {
    std::uint32_t highest = 0;
    for (std::size_t index = 0; index < count; ++index) {
        highest = numbers[index] > highest ? numbers[index] : highest;
    }
    return highest;
}

}  // namespace gompfs

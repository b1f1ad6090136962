// Decodes rows of items; see item_rows.h.
//
// One thread visits the sub-blocks in turn. Neighbouring visits do not depend on each other, so the
// processor executes them in parallel. A visit loads 64 bits, of which 57 or more belong to the
// sub-block from its position on, and decodes as many items as these are sure to hold: the items of
// up to four rows. Positions are compared with the end of the stream once for these rows; until
// then a visit reads at most the 8 bytes after the stream.
//
// There is a portable version for numbers and one for AVX-512, which visits eight sub-blocks at
// once. Both give the same results for all input.
//
// Raw pointers and no std::min or std::max: in a target clone, GCC does not inline functions of the
// library.
#include "codec/item_rows.h"

#include <optional>

#include "codec/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own header, which deliberately leaves masked lanes undefined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

namespace gompfs {
namespace {

constexpr int kWindowBits = 57;

// As many rows of classes as a window holds.
constexpr std::size_t kClassRows = 4;
static_assert(kClassRows * kMaxClassBits <= kWindowBits);

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

GOMPFS_TARGET_CLONES bool decode_numbers_portable(const ItemStream& stream, const ClassTable& code,
                                                  std::span<std::uint32_t> numbers) {
    std::uint32_t* const out = numbers.data();
    const std::size_t count = numbers.size();
    std::size_t first = 0;
    if (3 * code.max_item_bits <= kWindowBits) {
        for (; count - first >= 3 * kNumSubBlocks; first += 3 * kNumSubBlocks) {
            if (!decode_number_rows<3>(stream, code, kNumSubBlocks, out + first)) {
                return false;
            }
        }
    }
    if (2 * code.max_item_bits <= kWindowBits) {
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

#if defined(__x86_64__)
// As decode_number_rows, for eight sub-blocks of full rows at a time, with gathers.
template <std::size_t kRows>
__attribute__((target("avx512f"))) bool decode_number_rows_avx512(const ItemStream& stream,
                                                                  const ClassTable& code,
                                                                  std::uint32_t* numbers) {
    const __m512i ones = _mm512_set1_epi64(-1);
    const __m512i byte_mask = _mm512_set1_epi64(63);
    const __m512i index_mask = _mm512_set1_epi64((std::int64_t{1} << code.index_bits) - 1);
    const __m256i end = _mm256_set1_epi32(static_cast<int>(stream.num_bits));
    __m256i overruns = _mm256_setzero_si256();
    for (std::size_t lane = 0; lane < kNumSubBlocks; lane += 8) {
        auto* const positions = reinterpret_cast<__m256i*>(stream.positions + lane);
        const __m256i position = _mm256_loadu_si256(positions);
        __m512i window = _mm512_srlv_epi64(
            _mm512_i32gather_epi64(_mm256_srli_epi32(position, 3), stream.bytes, 1),
            _mm512_cvtepu32_epi64(_mm256_and_si256(position, _mm256_set1_epi32(7))));
        __m512i all_used = _mm512_setzero_si512();
        for (std::size_t row = 0; row < kRows; ++row) {
            const __m512i entry = _mm512_i64gather_epi64(_mm512_and_si512(window, index_mask),
                                                         code.entries.data(), 8);
            const __m512i extra_bits = _mm512_and_si512(_mm512_srli_epi64(entry, 8), byte_mask);
            const __m512i extra =
                _mm512_andnot_si512(_mm512_sllv_epi64(ones, extra_bits),
                                    _mm512_srlv_epi64(window, _mm512_and_si512(entry, byte_mask)));
            const __m512i used = _mm512_and_si512(_mm512_srli_epi64(entry, 16), byte_mask);
            _mm256_storeu_si256(
                reinterpret_cast<__m256i*>(numbers + row * kNumSubBlocks + lane),
                _mm512_cvtepi64_epi32(_mm512_add_epi64(_mm512_srli_epi64(entry, 32), extra)));
            window = _mm512_srlv_epi64(window, used);
            all_used = _mm512_add_epi64(all_used, used);
        }
        const __m256i next = _mm256_add_epi32(position, _mm512_cvtepi64_epi32(all_used));
        _mm256_storeu_si256(positions, next);
        overruns = _mm256_or_si256(overruns, _mm256_sub_epi32(end, next));
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(overruns)) == 0;
}

// Decodes full rows of numbers. Returns how many numbers were decoded, or nothing if a position is
// not in the stream.
__attribute__((target("avx512f"))) std::optional<std::size_t> decode_numbers_avx512(
    const ItemStream& stream, const ClassTable& code, std::span<std::uint32_t> numbers) {
    std::uint32_t* const out = numbers.data();
    const std::size_t count = numbers.size();
    bool valid = true;
    std::size_t first = 0;
    if (3 * code.max_item_bits <= kWindowBits) {
        for (; valid && count - first >= 3 * kNumSubBlocks; first += 3 * kNumSubBlocks) {
            valid = decode_number_rows_avx512<3>(stream, code, out + first);
        }
    }
    if (2 * code.max_item_bits <= kWindowBits) {
        for (; valid && count - first >= 2 * kNumSubBlocks; first += 2 * kNumSubBlocks) {
            valid = decode_number_rows_avx512<2>(stream, code, out + first);
        }
    }
    for (; valid && count - first >= kNumSubBlocks; first += kNumSubBlocks) {
        valid = decode_number_rows_avx512<1>(stream, code, out + first);
    }
    return valid ? std::optional(first) : std::nullopt;
}
#endif

}  // namespace

bool decode_numbers(const ItemStream& stream, const ClassTable& code,
                    std::span<std::uint32_t> numbers) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        const std::optional<std::size_t> num_decoded = decode_numbers_avx512(stream, code, numbers);
        return num_decoded && decode_numbers_portable(stream, code, numbers.subspan(*num_decoded));
    }
#endif
    return decode_numbers_portable(stream, code, numbers);
}

GOMPFS_TARGET_CLONES bool decode_classes(const ItemStream& stream, const ClassTable& code,
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

GOMPFS_TARGET_CLONES std::uint32_t highest_of(const std::uint32_t* numbers, std::size_t count) {
    std::uint32_t highest = 0;
    for (std::size_t index = 0; index < count; ++index) {
        highest = numbers[index] > highest ? numbers[index] : highest;
    }
    return highest;
}

}  // namespace gompfs

// Decoding of whole rows of items with AVX-512; see item_rows_avx512.h.
//
// As in item_rows.cpp, a visit to a sub-block loads a window of 64 bits, and decodes as many items
// as the window is sure to hold.
#include "codec/item_rows_avx512.h"

#include <algorithm>

#include "common/little_endian.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own header, which deliberately leaves masked lanes undefined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define GOMPFS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

namespace gompfs {
namespace {

constexpr std::size_t kLanes = 8;                    // of 64 bits in a register
constexpr __mmask64 kLowBytes = 0x0101010101010101;  // of each lane

// The tables of a code in registers.
struct Code {
    __m512i classes[4];
    __m512i lengths;
};

GOMPFS_AVX512 inline Code load_code(const ClassTable& table) {
    const std::uint8_t* const classes = table.short_classes.data();
    return {{_mm512_loadu_si512(classes), _mm512_loadu_si512(classes + 64),
             _mm512_loadu_si512(classes + 128), _mm512_loadu_si512(classes + 192)},
            _mm512_loadu_si512(table.short_lengths.data())};
}

// The classes of the codewords that windows begin with.
GOMPFS_AVX512 inline __m512i classes_of(const Code& code, __m512i windows) {
    const __mmask64 upper_half =
        _mm512_mask_test_epi8_mask(kLowBytes, windows, _mm512_set1_epi8(static_cast<char>(128)));
    const __m512i lower =
        _mm512_maskz_permutex2var_epi8(kLowBytes, code.classes[0], windows, code.classes[1]);
    const __m512i upper = _mm512_permutex2var_epi8(code.classes[2], windows, code.classes[3]);
    return _mm512_mask_blend_epi8(upper_half, lower, upper);
}

GOMPFS_AVX512 inline __m512i lengths_of(const Code& code, __m512i classes) {
    return _mm512_maskz_permutexvar_epi8(kLowBytes, classes, code.lengths);
}

// Positions of eight sub-blocks, and what the stream has there.
struct Visit {
    __m256i positions;
    __m512i windows;
};

// Eight loads take less time than a gather.
GOMPFS_AVX512 inline Visit visit(const ItemStream& stream, std::size_t lane) {
    const auto load_at = [&](std::size_t index) {
        return load<long long>(stream.bytes + (stream.positions[lane + index] >> 3));
    };
    const __m512i loaded = _mm512_set_epi64(load_at(7), load_at(6), load_at(5), load_at(4),
                                            load_at(3), load_at(2), load_at(1), load_at(0));
    const __m256i positions =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(stream.positions + lane));
    const __m256i bits = _mm256_and_si256(positions, _mm256_set1_epi32(7));
    return {positions, _mm512_srlv_epi64(loaded, _mm512_cvtepu32_epi64(bits))};
}

// Advances the positions. Returns a vector of which an element is negative if its position is after
// the end of the stream.
GOMPFS_AVX512 inline __m256i advance(const ItemStream& stream, std::size_t lane,
                                     const Visit& visited, __m512i used) {
    const __m256i next = _mm256_add_epi32(visited.positions, _mm512_cvtepi64_epi32(used));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(stream.positions + lane), next);
    return _mm256_sub_epi32(_mm256_set1_epi32(static_cast<int>(stream.num_bits)), next);
}

GOMPFS_AVX512 bool decode_number_rows(const ItemStream& stream, const ClassTable& table,
                                      std::size_t num_rows, std::uint32_t* numbers) {
    const Code code = load_code(table);
    const __m512i ones = _mm512_set1_epi64(-1), one = _mm512_set1_epi64(1);
    const __m512i two = _mm512_set1_epi64(2);
    __m256i overruns = _mm256_setzero_si256();
    for (std::size_t lane = 0; lane < kNumSubBlocks; lane += kLanes) {
        const Visit visited = visit(stream, lane);
        __m512i windows = visited.windows;
        __m512i all_used = _mm512_setzero_si512();
        for (std::size_t row = 0; row < num_rows; ++row) {
            const __m512i classes = classes_of(code, windows);
            const __m512i lengths = lengths_of(code, classes);
            const __m512i num_extra = _mm512_srli_epi64(classes, 1);
            const __m512i extra = _mm512_srlv_epi64(windows, lengths);
            // The base of the class plus 2: 2 or 3, shifted. (f8: or; 0xea: or of an and)
            const __m512i base =
                _mm512_sllv_epi64(_mm512_ternarylogic_epi64(two, classes, one, 0xf8), num_extra);
            // base | (extra & ~(ones << num_extra))
            const __m512i sum =
                _mm512_ternarylogic_epi64(base, extra, _mm512_sllv_epi64(ones, num_extra), 0xf4);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(numbers + row * kNumSubBlocks + lane),
                                _mm512_cvtepi64_epi32(_mm512_sub_epi64(sum, two)));
            const __m512i used = _mm512_add_epi64(lengths, num_extra);
            windows = _mm512_srlv_epi64(windows, used);
            all_used = _mm512_add_epi64(all_used, used);
        }
        overruns = _mm256_or_si256(overruns, advance(stream, lane, visited, all_used));
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(overruns)) == 0;
}

GOMPFS_AVX512 bool decode_class_rows(const ItemStream& stream, const ClassTable& table,
                                     std::size_t num_rows, std::uint8_t* numbers) {
    const Code code = load_code(table);
    __m256i overruns = _mm256_setzero_si256();
    for (std::size_t lane = 0; lane < kNumSubBlocks; lane += kLanes) {
        const Visit visited = visit(stream, lane);
        __m512i windows = visited.windows;
        __m512i all_used = _mm512_setzero_si512();
        for (std::size_t row = 0; row < num_rows; ++row) {
            const __m512i classes = classes_of(code, windows);
            _mm_storel_epi64(reinterpret_cast<__m128i*>(numbers + row * kNumSubBlocks + lane),
                             _mm512_cvtepi64_epi8(classes));
            const __m512i lengths = lengths_of(code, classes);
            windows = _mm512_srlv_epi64(windows, lengths);
            all_used = _mm512_add_epi64(all_used, lengths);
        }
        overruns = _mm256_or_si256(overruns, advance(stream, lane, visited, all_used));
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(overruns)) == 0;
}

// Calls decode(number of rows, first item) for as many rows at a time as a window holds.
template <typename Decode>
bool for_rows(std::size_t num_items, int max_item_bits, Decode decode) {
    const std::size_t rows_at_once = kItemWindowBits / static_cast<std::size_t>(max_item_bits);
    std::size_t rows_left = num_items / kNumSubBlocks;
    for (std::size_t first = 0; rows_left != 0;) {
        const std::size_t rows = std::min(rows_left, rows_at_once);
        if (!decode(rows, first)) {
            return false;
        }
        first += rows * kNumSubBlocks;
        rows_left -= rows;
    }
    return true;
}

}  // namespace

bool can_use_avx512(const ClassTable& code) {
    static const bool is_there = __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512vl") &&
                                 __builtin_cpu_supports("avx512vbmi");
    return is_there && code.index_bits <= ClassTable::kShortBits;
}

bool decode_number_rows_avx512(const ItemStream& stream, const ClassTable& code,
                               std::span<std::uint32_t> numbers) {
    return for_rows(numbers.size(), code.max_item_bits, [&](std::size_t rows, std::size_t first) {
        return decode_number_rows(stream, code, rows, numbers.data() + first);
    });
}

bool decode_class_rows_avx512(const ItemStream& stream, const ClassTable& code,
                              std::span<std::uint8_t> classes) {
    return for_rows(classes.size(), code.index_bits, [&](std::size_t rows, std::size_t first) {
        return decode_class_rows(stream, code, rows, classes.data() + first);
    });
}

}  // namespace gompfs

#else

namespace gompfs {

bool can_use_avx512(const ClassTable&) { return false; }
bool decode_number_rows_avx512(const ItemStream&, const ClassTable&, std::span<std::uint32_t>) {
    return false;
}
bool decode_class_rows_avx512(const ItemStream&, const ClassTable&, std::span<std::uint8_t>) {
    return false;
}

}  // namespace gompfs

#endif

// Decoding of a row of sequences; see bit_row.h. There is a portable version and one for AVX-512,
// which decodes eight sub-blocks at once with gathers. Both give the same results for all input.
#include "codec/bit_row.h"

#include <algorithm>

#include "common/bit_stream.h"
#include "common/copy.h"
#include "shared/dictionary_addresses.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns about its own header, which deliberately leaves masked lanes undefined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

namespace gompfs {
namespace {

constexpr int kOffsetShift = 32;
constexpr std::uint64_t kMatchBaseMask = 0xffff0000;

GOMPFS_TARGET_CLONES std::uint32_t decode_row_portable(const RowTables& tables,
                                                       std::uint32_t* positions, int count,
                                                       std::uint64_t* row) {
    std::uint32_t farthest = 0;
    for (int lane = 0; lane < count; ++lane) {
        const std::uint32_t position = positions[lane];
        const std::uint64_t window =
            load<std::uint64_t>(tables.stream + (position >> 3)) >> (position & 7);
        const std::uint64_t token = tables.token[low_bits(window, kMaxTokenBits)];
        const std::uint64_t literal_window = window >> ((token >> 32) & 63);
        const std::uint64_t literal_extra = low_bits(literal_window, (token >> 40) & 63);
        const std::uint64_t match_window = literal_window >> ((token >> 40) & 63);
        const std::uint64_t match_extra = low_bits(match_window, (token >> 48) & 63);
        std::uint64_t sequence = (token & 0xffffffff) + literal_extra + (match_extra << 16);
        std::uint32_t next = position + static_cast<std::uint32_t>(token >> 56);
        if ((token & kMatchBaseMask) != 0) [[likely]] {
            const std::uint64_t offset_window = window >> ((token >> 56) & 63);
            const std::uint64_t entry = tables.offset[low_bits(offset_window, kMaxOffsetBits)];
            const std::uint64_t offset_extra =
                low_bits(offset_window >> (entry & 63), (entry >> 8) & 63);
            sequence += (entry >> kOffsetShift << kOffsetShift) + (offset_extra << kOffsetShift);
            next += (entry >> 16) & 255;
        }
        row[lane] = sequence;
        positions[lane] = next;
        farthest = std::max(farthest, next);
    }
    return farthest;
}

#if defined(__x86_64__)
// As the portable version, for eight sub-blocks at a time. A row that is not full uses the portable
// version. (AVX2, with gathers of four, gains only 7%.)
__attribute__((target("avx512f"))) std::uint32_t decode_row_avx512(const RowTables& tables,
                                                                   std::uint32_t* positions,
                                                                   int count, std::uint64_t* row) {
    if (count != kNumSubBlocks) {
        return decode_row_portable(tables, positions, count, row);
    }
    const __m512i ones = _mm512_set1_epi64(-1);
    const __m512i byte_mask = _mm512_set1_epi64(63);
    const __m512i token_mask = _mm512_set1_epi64((1 << kMaxTokenBits) - 1);
    const __m512i offset_mask = _mm512_set1_epi64((1 << kMaxOffsetBits) - 1);
    const __m512i low_half = _mm512_set1_epi64(0xffffffff);
    const __m512i match_base_mask = _mm512_set1_epi64(kMatchBaseMask);
    __m256i farthest = _mm256_setzero_si256();
    for (int lane = 0; lane < kNumSubBlocks; lane += 8) {
        const __m256i position =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(positions + lane));
        const __m512i window = _mm512_srlv_epi64(
            _mm512_i32gather_epi64(_mm256_srli_epi32(position, 3), tables.stream, 1),
            _mm512_cvtepu32_epi64(_mm256_and_si256(position, _mm256_set1_epi32(7))));
        const __m512i token =
            _mm512_i64gather_epi64(_mm512_and_si512(window, token_mask), tables.token, 8);
        const __m512i literal_bits = _mm512_and_si512(_mm512_srli_epi64(token, 40), byte_mask);
        const __m512i match_bits = _mm512_and_si512(_mm512_srli_epi64(token, 48), byte_mask);
        const __m512i token_bits = _mm512_srli_epi64(token, 56);
        const __m512i literal_window =
            _mm512_srlv_epi64(window, _mm512_and_si512(_mm512_srli_epi64(token, 32), byte_mask));
        const __m512i match_window = _mm512_srlv_epi64(literal_window, literal_bits);
        const __m512i literal_extra =
            _mm512_andnot_si512(_mm512_sllv_epi64(ones, literal_bits), literal_window);
        const __m512i match_extra =
            _mm512_andnot_si512(_mm512_sllv_epi64(ones, match_bits), match_window);
        const __m512i lengths =
            _mm512_add_epi64(_mm512_add_epi64(_mm512_and_si512(token, low_half), literal_extra),
                             _mm512_slli_epi64(match_extra, 16));
        const __m512i offset_window = _mm512_srlv_epi64(window, token_bits);
        const __m512i entry = _mm512_maskz_mov_epi64(
            _mm512_test_epi64_mask(token, match_base_mask),
            _mm512_i64gather_epi64(_mm512_and_si512(offset_window, offset_mask), tables.offset, 8));
        const __m512i extra_bits = _mm512_and_si512(_mm512_srli_epi64(entry, 8), byte_mask);
        const __m512i offset_extra = _mm512_andnot_si512(
            _mm512_sllv_epi64(ones, extra_bits),
            _mm512_srlv_epi64(offset_window, _mm512_and_si512(entry, byte_mask)));
        const __m512i offset = _mm512_add_epi64(_mm512_andnot_si512(low_half, entry),
                                                _mm512_slli_epi64(offset_extra, kOffsetShift));
        _mm512_storeu_si512(row + lane, _mm512_add_epi64(lengths, offset));
        const __m512i used =
            _mm512_add_epi64(token_bits, _mm512_and_si512(_mm512_srli_epi64(entry, 16), byte_mask));
        const __m256i next = _mm256_add_epi32(position, _mm512_cvtepi64_epi32(used));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions + lane), next);
        farthest = _mm256_max_epu32(farthest, next);
    }
    __m128i half =
        _mm_max_epu32(_mm256_castsi256_si128(farthest), _mm256_extracti128_si256(farthest, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}
#endif

}  // namespace

std::uint64_t token_entry(std::size_t symbol, std::uint64_t codeword_bits) {
    const std::size_t literal_class = symbol >> 5;
    const std::size_t match_class = symbol & 31;
    const std::uint64_t literal_bits = kLiteralClassExtraBits[literal_class];
    const std::uint64_t match_bits = kMatchClassExtraBits[match_class];
    return kLiteralClassBase[literal_class] | std::uint64_t{kMatchClassBase[match_class]} << 16 |
           codeword_bits << 32 | literal_bits << 40 | match_bits << 48 |
           (codeword_bits + literal_bits + match_bits) << 56;
}

std::uint64_t offset_entry(std::size_t symbol, std::uint64_t codeword_bits) {
    if (symbol == kOffsetSymbolRepeat) {
        return codeword_bits | codeword_bits << 16;
    }
    if (symbol >= kFirstDictionarySymbol) {
        const auto dictionary_symbol = static_cast<unsigned>(symbol);
        const std::uint64_t extra_bits = dictionary_extra_bits(dictionary_symbol);
        const std::uint64_t base = kFromDictionary + first_dictionary_address(dictionary_symbol);
        return codeword_bits | extra_bits << 8 | (codeword_bits + extra_bits) << 16 |
               base << kOffsetShift;
    }
    const std::uint64_t extra_bits = (symbol - 1) / 2;
    const std::uint64_t base = ((2 + ((symbol - 1) & 1)) << extra_bits) - 1;
    return codeword_bits | extra_bits << 8 | (codeword_bits + extra_bits) << 16 |
           base << kOffsetShift;
}

DecodeRow select_decode_row() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return decode_row_avx512;
    }
#endif
    return decode_row_portable;
}

}  // namespace gompfs

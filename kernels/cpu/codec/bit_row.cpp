#include "codec/bit_row.h"

#include <algorithm>

#include "codec/bit_stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gompfs {
namespace {

constexpr int kOffsetShift = 32;
constexpr std::uint64_t kMatchBaseMask = 0xffff0000;

std::uint32_t decode_row_portable(const RowTables& tables, std::uint32_t* positions, int count,
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
// The same on four sub-blocks at a time; a row that is not full takes the portable way.
__attribute__((target("avx2"))) std::uint32_t decode_row_avx2(const RowTables& tables,
                                                              std::uint32_t* positions, int count,
                                                              std::uint64_t* row) {
    if (count != kNumSubBlocks) {
        return decode_row_portable(tables, positions, count, row);
    }
    const __m256i ones = _mm256_set1_epi64x(-1);
    const __m256i byte_mask = _mm256_set1_epi64x(63);
    const __m256i token_mask = _mm256_set1_epi64x((1 << kMaxTokenBits) - 1);
    const __m256i offset_mask = _mm256_set1_epi64x((1 << kMaxOffsetBits) - 1);
    const __m256i low_half = _mm256_set1_epi64x(0xffffffff);
    const __m256i match_base_mask = _mm256_set1_epi64x(kMatchBaseMask);
    const __m256i even_words = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    const auto* stream = reinterpret_cast<const long long*>(tables.stream);
    const auto* token_table = reinterpret_cast<const long long*>(tables.token);
    const auto* offset_table = reinterpret_cast<const long long*>(tables.offset);
    __m128i farthest = _mm_setzero_si128();
    for (int lane = 0; lane < kNumSubBlocks; lane += 4) {
        const __m128i position =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(positions + lane));
        const __m256i window =
            _mm256_srlv_epi64(_mm256_i32gather_epi64(stream, _mm_srli_epi32(position, 3), 1),
                              _mm256_cvtepu32_epi64(_mm_and_si128(position, _mm_set1_epi32(7))));
        const __m256i token =
            _mm256_i64gather_epi64(token_table, _mm256_and_si256(window, token_mask), 8);
        const __m256i literal_bits = _mm256_and_si256(_mm256_srli_epi64(token, 40), byte_mask);
        const __m256i match_bits = _mm256_and_si256(_mm256_srli_epi64(token, 48), byte_mask);
        const __m256i token_bits = _mm256_srli_epi64(token, 56);
        const __m256i literal_window =
            _mm256_srlv_epi64(window, _mm256_and_si256(_mm256_srli_epi64(token, 32), byte_mask));
        const __m256i match_window = _mm256_srlv_epi64(literal_window, literal_bits);
        const __m256i literal_extra =
            _mm256_andnot_si256(_mm256_sllv_epi64(ones, literal_bits), literal_window);
        const __m256i match_extra =
            _mm256_andnot_si256(_mm256_sllv_epi64(ones, match_bits), match_window);
        const __m256i lengths =
            _mm256_add_epi64(_mm256_add_epi64(_mm256_and_si256(token, low_half), literal_extra),
                             _mm256_slli_epi64(match_extra, 16));

        const __m256i no_match =
            _mm256_cmpeq_epi64(_mm256_and_si256(token, match_base_mask), _mm256_setzero_si256());
        const __m256i offset_window = _mm256_srlv_epi64(window, token_bits);
        const __m256i entry = _mm256_andnot_si256(
            no_match,
            _mm256_i64gather_epi64(offset_table, _mm256_and_si256(offset_window, offset_mask), 8));
        const __m256i extra_bits = _mm256_and_si256(_mm256_srli_epi64(entry, 8), byte_mask);
        const __m256i offset_extra = _mm256_andnot_si256(
            _mm256_sllv_epi64(ones, extra_bits),
            _mm256_srlv_epi64(offset_window, _mm256_and_si256(entry, byte_mask)));
        const __m256i offset = _mm256_add_epi64(_mm256_andnot_si256(low_half, entry),
                                                _mm256_slli_epi64(offset_extra, kOffsetShift));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + lane),
                            _mm256_add_epi64(lengths, offset));

        const __m256i used =
            _mm256_add_epi64(token_bits, _mm256_and_si256(_mm256_srli_epi64(entry, 16), byte_mask));
        const __m128i next = _mm_add_epi32(
            position, _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(used, even_words)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(positions + lane), next);
        farthest = _mm_max_epu32(farthest, next);
    }
    farthest = _mm_max_epu32(farthest, _mm_shuffle_epi32(farthest, 0x4e));
    farthest = _mm_max_epu32(farthest, _mm_shuffle_epi32(farthest, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(farthest));
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
    const std::uint64_t extra_bits = (symbol - 1) / 2;
    const std::uint64_t base = ((2 + ((symbol - 1) & 1)) << extra_bits) - 1;
    return codeword_bits | extra_bits << 8 | (codeword_bits + extra_bits) << 16 |
           base << kOffsetShift;
}

DecodeRow select_decode_row() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return decode_row_avx2;
    }
#endif
    return decode_row_portable;
}

}  // namespace gompfs

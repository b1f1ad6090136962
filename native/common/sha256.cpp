// SHA-256; see sha256.h. Names are those of FIPS 180-4.
#include "common/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

namespace gompfs {
namespace {

constexpr std::size_t kNumRounds = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::uint32_t kRoundConstants[kNumRounds] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void store_big_endian(std::uint8_t* target, std::uint64_t value, std::size_t size) {
    for (std::size_t index = 0; index < size; ++index) {
        target[index] = static_cast<std::uint8_t>(value >> 8 * (size - 1 - index));
    }
}

#if defined(__x86_64__)

// Four rounds at a time. The instructions hold the state as two vectors, {a, b, e, f} and
// {c, d, g, h}, with the first word in the highest lane.
__attribute__((target("sha,sse4.1"))) void compress_x86(Sha256::State& state,
                                                        const std::uint8_t* bytes,
                                                        std::size_t num_blocks) {
    const __m128i reversed = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const auto words = reinterpret_cast<__m128i*>(state.data());
    const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; num_blocks > 0; --num_blocks, bytes += Sha256::kBlockSize) {
        const __m128i old_abef = abef, old_cdgh = cdgh;
        __m128i w[4];
#pragma GCC unroll 16
        for (std::size_t step = 0; step < kNumRounds / 4; ++step) {
            __m128i& next = w[step % 4];
            if (step < 4) {
                const auto block = reinterpret_cast<const __m128i*>(bytes);
                next = _mm_shuffle_epi8(_mm_loadu_si128(block + step), reversed);
            } else {
                const __m128i last = w[(step + 3) % 4];
                const __m128i w_minus_7 = _mm_alignr_epi8(last, w[(step + 2) % 4], 4);
                next = _mm_add_epi32(_mm_sha256msg1_epu32(next, w[(step + 1) % 4]), w_minus_7);
                next = _mm_sha256msg2_epu32(next, last);
            }
            const auto k = reinterpret_cast<const __m128i*>(kRoundConstants) + step;
            const __m128i sums = _mm_add_epi32(next, _mm_load_si128(k));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0e));
        }
        abef = _mm_add_epi32(abef, old_abef);
        cdgh = _mm_add_epi32(cdgh, old_cdgh);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#elif defined(__aarch64__)

// Four rounds at a time. GCC has the instructions for SHA-256 in a group with those for AES, which
// it does not use here.
__attribute__((target("+crypto"))) void compress_arm(Sha256::State& state,
                                                     const std::uint8_t* bytes,
                                                     std::size_t num_blocks) {
    uint32x4_t abcd = vld1q_u32(state.data()), efgh = vld1q_u32(state.data() + 4);
    for (; num_blocks > 0; --num_blocks, bytes += Sha256::kBlockSize) {
        const uint32x4_t old_abcd = abcd, old_efgh = efgh;
        uint32x4_t w[4];
#pragma GCC unroll 16
        for (std::size_t step = 0; step < kNumRounds / 4; ++step) {
            uint32x4_t& next = w[step % 4];
            if (step < 4) {
                next = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * step)));
            } else {
                next = vsha256su0q_u32(next, w[(step + 1) % 4]);
                next = vsha256su1q_u32(next, w[(step + 2) % 4], w[(step + 3) % 4]);
            }
            const uint32x4_t sums = vaddq_u32(next, vld1q_u32(kRoundConstants + 4 * step));
            const uint32x4_t before = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sums);
            efgh = vsha256h2q_u32(efgh, before, sums);
        }
        abcd = vaddq_u32(abcd, old_abcd);
        efgh = vaddq_u32(efgh, old_efgh);
    }
    vst1q_u32(state.data(), abcd);
    vst1q_u32(state.data() + 4, efgh);
}

#endif

}  // namespace

GOMPFS_TARGET_CLONES void compress_portable(Sha256::State& state, const std::uint8_t* bytes,
                                            std::size_t num_blocks) {
    for (; num_blocks > 0; --num_blocks, bytes += Sha256::kBlockSize) {
        std::uint32_t w[16];  // of the last 16 rounds
        auto [a, b, c, d, e, f, g, h] = state;
        for (std::size_t first = 0; first < kNumRounds; first += 16) {
#pragma GCC unroll 16
            for (std::size_t t = 0; t < 16; ++t) {
                if (first == 0) {
                    std::memcpy(&w[t], bytes + 4 * t, 4);
                    w[t] = __builtin_bswap32(w[t]);
                } else {
                    const std::uint32_t x = w[(t + 1) % 16], y = w[(t + 14) % 16];
                    const std::uint32_t sigma0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3;
                    const std::uint32_t sigma1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10;
                    w[t] += sigma0 + w[(t + 9) % 16] + sigma1;
                }
                const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
                const std::uint32_t t1 =
                    h + sum1 + (g ^ (e & (f ^ g))) + kRoundConstants[first + t] + w[t];
                const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
                const std::uint32_t t2 = sum0 + ((a & b) | (c & (a | b)));
                h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
            }
        }
        const std::uint32_t added[] = {a, b, c, d, e, f, g, h};
        for (std::size_t index = 0; index < state.size(); ++index) {
            state[index] += added[index];
        }
    }
}

CompressBlocks* fastest_compress() {
#if defined(__x86_64__)
    static const bool has_sha = __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1");
    return has_sha ? compress_x86 : compress_portable;
#elif defined(__aarch64__)
    static const bool has_sha = (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0;
    return has_sha ? compress_arm : compress_portable;
#else
    return compress_portable;
#endif
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
    const std::size_t num_waiting = size_ % kBlockSize;
    size_ += bytes.size();
    if (num_waiting > 0) {
        const std::size_t taken = std::min(bytes.size(), kBlockSize - num_waiting);
        std::copy_n(bytes.data(), taken, rest_.data() + num_waiting);
        bytes = bytes.subspan(taken);
        if (num_waiting + taken < kBlockSize) {
            return;
        }
        fastest_compress()(state_, rest_.data(), 1);
    }
    const std::size_t num_blocks = bytes.size() / kBlockSize;
    if (num_blocks > 0) {
        fastest_compress()(state_, bytes.data(), num_blocks);
    }
    std::ranges::copy(bytes.subspan(num_blocks * kBlockSize), rest_.data());
}

Sha256::Digest Sha256::digest() {
    // A bit 1, zeros, and the number of bits in 8 bytes, so that the last block is complete.
    std::array<std::uint8_t, 2 * kBlockSize> end = {0x80};
    const std::size_t num_waiting = size_ % kBlockSize;
    const std::size_t num_zeros = (2 * kBlockSize - 9 - num_waiting) % kBlockSize;
    store_big_endian(end.data() + 1 + num_zeros, size_ * 8, 8);
    update(std::span(end).first(1 + num_zeros + 8));
    Digest digest;
    for (std::size_t index = 0; index < state_.size(); ++index) {
        store_big_endian(digest.data() + 4 * index, state_[index], 4);
    }
    return digest;
}

}  // namespace gompfs

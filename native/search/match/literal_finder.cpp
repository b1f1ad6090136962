// Finds one literal; see literal_finder.h.
#include "search/match/literal_finder.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "search/match/byte_frequency.h"

namespace gompfs::search {
namespace {

bool is_lower(char byte) { return byte >= 'a' && byte <= 'z'; }

std::uint8_t lowered(char byte) {
    return static_cast<std::uint8_t>(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
}

#if defined(__x86_64__)
// The two rare bytes of a literal: their values, the bits of case, and their offsets in it.
struct RarePair {
    char first, second, first_case, second_case;
    std::size_t first_at, second_at;
};

constexpr std::size_t kSkipped = 64;  // positions that are passed at once

// Passes positions, kSkipped at once, until one of these may have the literal, or fewer are left
// before `end`.
__attribute__((target("avx2"))) std::size_t skip_avx2(const RarePair& pair, const char* bytes,
                                                      std::size_t at, std::size_t end) {
    const __m256i first = _mm256_set1_epi8(pair.first), second = _mm256_set1_epi8(pair.second);
    const __m256i first_case = _mm256_set1_epi8(pair.first_case);
    const __m256i second_case = _mm256_set1_epi8(pair.second_case);
    for (; at + kSkipped <= end; at += kSkipped) {
        __m256i found = _mm256_setzero_si256();
        for (std::size_t half = at; half != at + kSkipped; half += kSkipped / 2) {
            const auto* const at_first =
                reinterpret_cast<const __m256i*>(bytes + half + pair.first_at);
            const auto* const at_second =
                reinterpret_cast<const __m256i*>(bytes + half + pair.second_at);
            const __m256i left = _mm256_or_si256(_mm256_loadu_si256(at_first), first_case);
            const __m256i right = _mm256_or_si256(_mm256_loadu_si256(at_second), second_case);
            found = _mm256_or_si256(found, _mm256_and_si256(_mm256_cmpeq_epi8(left, first),
                                                            _mm256_cmpeq_epi8(right, second)));
        }
        if (_mm256_movemask_epi8(found) != 0) {
            break;
        }
    }
    return at;
}
#endif

}  // namespace

LiteralFinder::LiteralFinder(std::string literal, bool is_caseless)
    : literal_(std::move(literal)), is_caseless_(is_caseless), rare_{0, 0}, case_bits_{0, 0} {
    const auto rarer = [&](std::size_t left, std::size_t right) {
        return frequency_of(literal_[left]) < frequency_of(literal_[right]);
    };
    for (std::size_t index = 1; index < literal_.size(); ++index) {
        if (rarer(index, rare_[0])) {
            rare_[1] = rare_[0];
            rare_[0] = index;
        } else if (rare_[1] == rare_[0] || rarer(index, rare_[1])) {
            rare_[1] = index;
        }
    }
    for (int index = 0; index < 2; ++index) {
        case_bits_[index] = is_caseless_ && is_lower(literal_[rare_[index]]) ? 0x20 : 0;
    }
}

bool LiteralFinder::is_at(const char* text) const {
    if (!is_caseless_) {
        return std::memcmp(text, literal_.data(), literal_.size()) == 0;
    }
    return std::equal(literal_.begin(), literal_.end(), text, [](char expected, char byte) {
        return lowered(byte) == static_cast<std::uint8_t>(expected);
    });
}

std::size_t LiteralFinder::find(std::string_view text, std::size_t from) const {
    if (text.size() < literal_.size() || from > text.size() - literal_.size()) {
        return kNone;
    }
    const std::size_t end = text.size() - literal_.size() + 1;  // of the possible positions
    const char* const bytes = text.data();
    std::size_t at = from;
#if defined(__x86_64__)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    const RarePair pair{literal_[rare_[0]], literal_[rare_[1]], case_bits_[0],
                        case_bits_[1],      rare_[0],           rare_[1]};
    const auto load = [](const char* address) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(address));
    };
    const __m128i first = _mm_set1_epi8(pair.first), second = _mm_set1_epi8(pair.second);
    const __m128i first_case = _mm_set1_epi8(pair.first_case);
    const __m128i second_case = _mm_set1_epi8(pair.second_case);
    const auto candidates = [&](std::size_t position) {
        const __m128i left = _mm_or_si128(load(bytes + position + pair.first_at), first_case);
        const __m128i right = _mm_or_si128(load(bytes + position + pair.second_at), second_case);
        return _mm_and_si128(_mm_cmpeq_epi8(left, first), _mm_cmpeq_epi8(right, second));
    };
    for (std::size_t skip_at = at; at + 16 <= end; at += 16) {
        if (has_avx2 && at == skip_at) {
            at = skip_avx2(pair, bytes, at, end);
            skip_at = at + kSkipped;
            if (at + 16 > end) {
                break;
            }
        }
        auto mask = static_cast<unsigned>(_mm_movemask_epi8(candidates(at)));
        for (; mask != 0; mask &= mask - 1) {
            const std::size_t candidate = at + static_cast<std::size_t>(std::countr_zero(mask));
            if (is_at(bytes + candidate)) {
                return candidate;
            }
        }
    }
#else
    if (!is_caseless_) {
        const void* const found =
            memmem(bytes + at, text.size() - at, literal_.data(), literal_.size());
        return found == nullptr ? kNone
                                : static_cast<std::size_t>(static_cast<const char*>(found) - bytes);
    }
#endif
    for (; at < end; ++at) {
        if (is_at(bytes + at)) {
            return at;
        }
    }
    return kNone;
}

}  // namespace gompfs::search

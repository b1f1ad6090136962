// Finds one literal; see literal_finder.h.
#include "search/literal_finder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "search/byte_frequency.h"

namespace gompfs::search {
namespace {

bool is_lower(char byte) { return byte >= 'a' && byte <= 'z'; }

std::uint8_t lowered(char byte) {
    return static_cast<std::uint8_t>(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
}

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
#if defined(__SSE2__)
    const auto load = [](const char* address) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(address));
    };
    const __m128i first = _mm_set1_epi8(literal_[rare_[0]]);
    const __m128i second = _mm_set1_epi8(literal_[rare_[1]]);
    const __m128i first_case = _mm_set1_epi8(static_cast<char>(case_bits_[0]));
    const __m128i second_case = _mm_set1_epi8(static_cast<char>(case_bits_[1]));
    const auto candidates = [&](std::size_t position) {
        const __m128i found =
            _mm_cmpeq_epi8(_mm_or_si128(load(bytes + position + rare_[0]), first_case), first);
        return _mm_and_si128(
            found,
            _mm_cmpeq_epi8(_mm_or_si128(load(bytes + position + rare_[1]), second_case), second));
    };
    for (; at + 16 <= end; at += 16) {
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

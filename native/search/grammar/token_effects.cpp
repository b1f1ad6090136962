// Runs an automaton over words and separators; see token_effects.h.
//
// Most words have no byte that leaves the first state. They are found 64 bytes at a time.
#include "search/grammar/token_effects.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/copy.h"
#include "common/failures.h"
#include "common/processor.h"
#include "shared/format_constants.h"
#include "text/token_check.h"
#include "text/word_expander.h"

namespace gompfs::search {
namespace {

using State = LineAutomaton::State;

constexpr std::size_t kTokensAtOnce = 1 << 15;  // that a thread takes
constexpr std::size_t kMargin = 32;             // of the states of a word

constexpr std::size_t kChunk = 64;

// A word that is idle, by its size with a space.
Facts idle_word(std::uint32_t stored_size) {
    return stored_size <= kMaxExpansionSize ? stored_size | facts::kWord | facts::kBorder
                                            : facts::kMissing;
}

}  // namespace

LeavingBytes::LeavingBytes(const LineAutomaton& automaton) : leaves_(automaton.leaves) {
    leaves_[' '] = 0;
    static const bool can_use_avx2 = has_avx2();
    uses_avx2_ = can_use_avx2;
    for (std::size_t byte = 0; byte < 0x80; ++byte) {
        low_nibbles_[byte % 16] |= static_cast<std::uint8_t>(leaves_[byte] << byte / 16);
        high_nibbles_[byte / 16] = static_cast<std::uint8_t>(1 << byte / 16);
    }
    if (std::any_of(leaves_.begin() + 0x80, leaves_.end(),
                    [](std::uint8_t leaves) { return leaves != 0; })) {
        std::fill(leaves_.begin() + 0x80, leaves_.end(), std::uint8_t{1});
        others_ = ~std::uint32_t{0};
    }
}

#if defined(__x86_64__)
// A byte leaves if the bit of its high nibble is set in the entry of its low nibble.
[[gnu::target("avx2")]] std::uint64_t LeavingBytes::bits_avx2(const std::uint8_t* bytes) const {
    const auto table = [](const std::uint8_t* entries) __attribute__((target("avx2"))) {
        return _mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries)));
    };
    const __m256i low = table(low_nibbles_), high = table(high_nibbles_);
    const __m256i nibble = _mm256_set1_epi8(15);
    std::uint64_t bits = 0;
    for (int half = 0; half < 2; ++half) {
        const __m256i chunk = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes) + half);
        const __m256i of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(chunk, nibble));
        const __m256i of_high =
            _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(chunk, 4), nibble));
        const __m256i stays =
            _mm256_cmpeq_epi8(_mm256_and_si256(of_low, of_high), _mm256_setzero_si256());
        const auto found = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(stays)) |
                           (static_cast<std::uint32_t>(_mm256_movemask_epi8(chunk)) & others_);
        bits |= std::uint64_t{found} << (32 * half);
    }
    return bits;
}
#else
std::uint64_t LeavingBytes::bits_avx2(const std::uint8_t*) const { return 0; }
#endif

std::uint64_t LeavingBytes::bits(const std::uint8_t* bytes, std::size_t size) const {
    if (uses_avx2_ && size >= kChunk) [[likely]] {
        return bits_avx2(bytes);
    }
    std::uint64_t bits = 0;
    for (std::size_t index = 0; index < std::min(size, kChunk); ++index) {
        bits |= std::uint64_t{leaves_[bytes[index]]} << index;
    }
    return bits;
}

TokenEffect effect_of_word(const LineAutomaton& automaton, State at_end, std::size_t stored_size) {
    const State state = automaton.after_word[at_end];
    const Facts busy = state == LineAutomaton::kStart       ? 0
                       : state == LineAutomaton::kUndecided ? facts::kBusy | facts::kEndsLine
                                                            : facts::kBusy;
    return {idle_word(static_cast<std::uint32_t>(stored_size)) | busy, {state, 0}};
}

std::optional<TokenEffect> effect_of_separator(const LineAutomaton& automaton, Bytes separator) {
    auto effect = automaton.run(separator, LineAutomaton::kStart);
    if (!effect) {
        return std::nullopt;
    }
    effect->state = automaton.after_separator[effect->state];
    const bool is_busy = effect->state != LineAutomaton::kStart || effect->num_lines != 0;
    const bool ends_line = std::any_of(separator.begin(), separator.end(), [&](std::uint8_t byte) {
        return automaton.ends[byte] != 0;
    });
    const bool has_line_feed =
        std::find(separator.begin(), separator.end(), '\n') != separator.end();
    return TokenEffect{static_cast<std::uint32_t>(separator.size()) | facts::kSeparator |
                           (is_busy ? facts::kBusy : 0) | (ends_line ? facts::kEndsLine : 0) |
                           (has_line_feed ? facts::kLineFeed : 0),
                       *effect};
}

SegmentTokens::SegmentTokens(const LineAutomaton& automaton, const WordSection& section,
                             WordRule rule, unsigned num_threads)
    : section_(section), are_sound_(have_right_ascii(section, rule, num_threads)) {
    if (!are_sound_) {
        return;
    }
    const std::size_t count = section.words().size();
    words_.resize(count);
    facts_of_words_.resize(count);
    parallel_for_all((count + kTokensAtOnce - 1) / kTokensAtOnce, num_threads,
                     [&](std::size_t index) {
                         const std::size_t first = index * kTokensAtOnce;
                         find_words(automaton, first, std::min(first + kTokensAtOnce, count));
                     });
    for (std::uint32_t number = 0; number < section.separators().size(); ++number) {
        const Bytes separator = section.separators().stored(number);
        const bool is_valid = separator.size() <= kMaxExpansionSize;
        separators_.push_back((is_valid ? effect_of_separator(automaton, separator) : std::nullopt)
                                  .value_or(TokenEffect{}));
    }
}

GOMPFS_TARGET_CLONES void SegmentTokens::set_idle(std::size_t first, std::size_t end) {
    const std::uint32_t* const starts = section_.words().starts().data();
    Facts* const of_words = facts_of_words_.data();
    for (std::size_t word = first; word < end; ++word) {
        of_words[word] = idle_word(starts[word + 1] - starts[word]);
    }
    std::memset(words_.data() + first, 0, (end - first) * sizeof words_[0]);
    static_assert(LineAutomaton::kStart == 0);
}

void SegmentTokens::find_words(const LineAutomaton& automaton, std::size_t first, std::size_t end) {
    set_idle(first, end);
    const auto starts = section_.words().starts();
    const std::uint8_t* const bytes = section_.words().bytes().data();
    const LeavingBytes leaving(automaton);
    std::size_t word = first;
    for (std::size_t chunk = starts[first]; chunk < starts[end]; chunk += kChunk) {
        std::uint64_t bits = leaving.bits(bytes + chunk, starts[end] - chunk);
        for (; bits != 0; bits &= bits - 1) {
            std::size_t at = chunk + static_cast<std::size_t>(std::countr_zero(bits));
            if (at < starts[word]) {
                continue;  // in a word that was read
            }
            constexpr std::size_t kNear = 16;
            for (const std::size_t near = std::min(word + kNear, end);
                 word < near && starts[word + 1] <= at; ++word) {
            }
            if (starts[word + 1] <= at) {
                const auto after = std::upper_bound(
                    starts.begin() + static_cast<std::ptrdiff_t>(word), starts.end(), at);
                word = static_cast<std::size_t>(after - starts.begin()) - 1;
            }
            State state = LineAutomaton::kStart;
            for (; at + 1 < starts[word + 1]; ++at) {
                state = automaton.next(state, bytes[at]);
            }
            const TokenEffect effect =
                effect_of_word(automaton, state, starts[word + 1] - starts[word]);
            words_[word] = effect.effect.state;
            facts_of_words_[word] = effect.facts;
            ++word;
        }
    }
}

WordScanner::WordScanner(const LineAutomaton& automaton, Bytes suffixes)
    : automaton_(automaton),
      leaving_(automaton),
      at_(suffixes.data()),
      end_(at_ + suffixes.size()),
      chunk_(at_),
      states_([]() -> std::vector<State>& {
          thread_local std::vector<State> states(kMaxExpansionSize + 1 + kMargin);
          return states;
      }()) {
    states_[0] = LineAutomaton::kStart;
    load();
}

// Finds the bits of the chunk. Returns false if it begins at the end.
bool WordScanner::load() {
    const std::ptrdiff_t left = end_ - chunk_;
    if (left <= 0) {
        spaces_ = leaves_ = 0;
        return false;
    }
    std::uint8_t last[kChunk] = {};
    const std::uint8_t* bytes = chunk_;
    if (left < static_cast<std::ptrdiff_t>(kChunk)) {
        bytes = last;
        std::copy_n(chunk_, left, last);
    }
    spaces_ = space_bits(bytes);
    leaves_ = leaving_.bits(bytes, kChunk);
    return true;
}

// The next space, or nullptr. `leaves`: whether a byte before it leaves the first state.
const std::uint8_t* WordScanner::find_space(bool& leaves) {
    leaves = false;
    std::uint64_t from = at_ - chunk_ >= static_cast<std::ptrdiff_t>(kChunk)
                             ? 0
                             : ~std::uint64_t{0} << (at_ - chunk_);
    for (;;) {
        const std::uint64_t spaces = spaces_ & from;
        const std::uint64_t before = spaces == 0 ? ~std::uint64_t{0} : (spaces & -spaces) - 1;
        leaves = leaves || (leaves_ & from & before) != 0;
        if (spaces != 0) {
            return chunk_ + std::countr_zero(spaces);
        }
        chunk_ += kChunk;
        if (!load()) {
            return nullptr;
        }
        from = ~std::uint64_t{0};
    }
}

bool WordScanner::next(std::uint32_t prefix) {
    bool leaves = false;
    const std::uint8_t* const space = find_space(leaves);
    if (space == nullptr) {
        return false;
    }
    const auto suffix = static_cast<std::size_t>(space - at_);
    if (prefix > size_ || prefix + suffix == 0 || prefix + suffix >= kMaxExpansionSize) {
        return false;
    }
    State state = states_[prefix];
    State* to = &states_[prefix + 1];
    if (state == LineAutomaton::kStart && !leaves) {
        if (suffix <= kMargin) [[likely]] {
            std::fill_n(to, kMargin, LineAutomaton::kStart);
        } else {
            std::fill_n(to, suffix, LineAutomaton::kStart);
        }
    } else {
        for (const std::uint8_t* each = at_; each != space; ++each) {
            state = automaton_.next(state, *each);
            *to++ = state;
        }
    }
    state_ = state;
    size_ = prefix + suffix;
    at_ = space + 1;
    return true;
}

}  // namespace gompfs::search

// Expands words that are stored without the prefix that they share with the word before: a row of
// suffixes, each with a space after it, and the lengths of the prefixes elsewhere.
//
// Spaces are found 64 bytes at a time. Short words are put together in a vector register: its first
// bytes are those of the word before. (To load them from memory takes longer, because they were
// stored just before, in two pieces.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "common/bytes.h"
#include "shared/format_constants.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gompfs {

// Bit i of the result says whether byte i of 64 bytes is a space.
inline std::uint64_t space_bits(const std::uint8_t* bytes) {
    std::uint64_t bits = 0;
#if defined(__SSE2__)
    for (int part = 0; part < 4; ++part) {
        const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + part);
        const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(chunk, _mm_set1_epi8(' ')));
        bits |= static_cast<std::uint64_t>(mask) << (16 * part);
    }
#else
    for (int index = 0; index < 64; ++index) {
        bits |= std::uint64_t{bytes[index] == ' '} << index;
    }
#endif
    return bits;
}

// Finds one space after another.
class SpaceFinder {
  public:
    explicit SpaceFinder(Bytes bytes)
        : end_(bytes.data() + bytes.size()), chunk_(bytes.data()), spaces_(spaces_of_chunk()) {}

    // The next space, or nothing if there is none.
    [[gnu::always_inline]] const std::uint8_t* next() {
        while (spaces_ == 0) {
            if (!go_on()) {
                return nullptr;
            }
        }
        const std::uint8_t* const space = chunk_ + std::countr_zero(spaces_);
        spaces_ &= spaces_ - 1;
        return space;
    }

    // The last one of the next `count` spaces, which is 1 or more.
    const std::uint8_t* skip(std::size_t count) {
        for (std::size_t found; (found = static_cast<std::size_t>(std::popcount(spaces_))) < count;
             count -= found) {
            if (!go_on()) {
                return nullptr;
            }
        }
        for (; count > 1; --count) {
            spaces_ &= spaces_ - 1;
        }
        return next();
    }

  private:
    std::uint64_t spaces_of_chunk() const {
        if (end_ - chunk_ >= 64) {
            return space_bits(chunk_);
        }
        std::uint8_t last[64] = {};
        std::copy(chunk_, end_, last);
        return space_bits(last);
    }

    // Goes to the next chunk. Returns false at the end.
    bool go_on() {
        if (end_ - chunk_ <= 64) {
            return false;
        }
        chunk_ += 64;
        spaces_ = spaces_of_chunk();
        return true;
    }

    const std::uint8_t* const end_;
    const std::uint8_t* chunk_;
    std::uint64_t spaces_;  // of the chunk, that were not found yet
};

class WordExpander {
  public:
    // This many bytes after an expansion may be overwritten.
    static constexpr std::size_t kMargin = 32;

    // A word and its space have at most max_size bytes.
    explicit WordExpander(Bytes suffixes, std::size_t max_size = kMaxExpansionSize)
        : max_size_(max_size),
          begin_(suffixes.data()),
          end_(begin_ + suffixes.size()),
          next_(begin_),
          spaces_(suffixes) {}

    // Writes the next word and its space to `out`, if they have at most `room` bytes. The word
    // before must still be just before `out`. Returns the number of bytes, or 0 if there is no
    // valid word.
    [[gnu::always_inline]] std::size_t expand(std::size_t prefix, std::uint8_t* out,
                                              std::size_t room) {
        const std::uint8_t* const start = next_;
        const std::uint8_t* const space = spaces_.next();
        if (space == nullptr) [[unlikely]] {
            return 0;
        }
        const auto suffix = static_cast<std::size_t>(space - start);
        const std::size_t size = prefix + suffix + 1;
        if (prefix >= before_size_ || size == 1 || size > max_size_ || size > room) [[unlikely]] {
            return 0;
        }
        next_ = space + 1;
        if (size <= sizeof(Word) && start - begin_ >= std::ptrdiff_t{sizeof(Word)} &&
            end_ - start >= std::ptrdiff_t{sizeof(Word)}) [[likely]] {
            Word mask, word;
            std::memcpy(&mask, kPrefixMask + sizeof(Word) - prefix, sizeof mask);
            std::memcpy(&word, start - prefix, sizeof word);
            before_ = (before_ & mask) | (word & ~mask);
            std::memcpy(out, &before_, sizeof before_);
        } else {
            expand_slowly(before_size_, prefix, start, suffix + 1, out);
            std::uint8_t first[sizeof(Word)] = {};
            std::memcpy(first, out, std::min(size, sizeof first));
            std::memcpy(&before_, first, sizeof before_);
        }
        before_size_ = size;
        return size;
    }

    // The suffixes that were not taken yet.
    Bytes rest() const { return {next_, end_}; }

  private:
    typedef std::uint64_t Word __attribute__((vector_size(32)));
    static_assert(sizeof(Word) == kMargin);

    static constexpr std::uint8_t kPrefixMask[2 * sizeof(Word)] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

    // The word before is just before `out`.
    [[gnu::noinline]] static void expand_slowly(std::size_t before_size, std::size_t prefix,
                                                const std::uint8_t* suffix, std::size_t suffix_size,
                                                std::uint8_t* out) {
        if (prefix != 0) {
            std::memcpy(out, out - before_size, prefix);
        }
        std::memcpy(out + prefix, suffix, suffix_size);
    }

    const std::size_t max_size_;
    const std::uint8_t* const begin_;
    const std::uint8_t* const end_;
    const std::uint8_t* next_;
    SpaceFinder spaces_;
    Word before_{};                // the first bytes of the word before
    std::size_t before_size_ = 1;  // with the space; before the first word is an empty one
};

}  // namespace gompfs

// Fast copying of literals and matches: whole vectors, which may write past the end of the copied
// bytes where the output has space.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

// Compiles a hot function twice: for any x86-64 processor, and for processors with BMI2 and AVX2.
// The dynamic loader chooses. (With "arch=haswell" it would choose the second version on processors
// of that very name only. GCC 12 is the first to know levels.)
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__clang__) && __GNUC__ >= 12
#define GOMPFS_TARGET_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define GOMPFS_TARGET_CLONES
#endif

namespace gompfs {

// copy_match_fast may overwrite kCopyMargin bytes after the end of a match, and requires a match
// offset of at least kMinFastOffset.
constexpr std::size_t kCopyMargin = 32;
constexpr std::uint32_t kMinFastOffset = 16;

// Copies Size bytes as if through a register: source and target may overlap. (A vector: GCC 12 also
// stores an array of bytes to the stack.)
template <std::size_t Size>
[[gnu::always_inline]] inline void copy_fixed(std::uint8_t* target, const std::uint8_t* source) {
    typedef std::uint8_t Chunk __attribute__((vector_size(Size)));
    Chunk chunk;
    std::memcpy(&chunk, source, Size);
    std::memcpy(target, &chunk, Size);
}

// Copies a chunk: more bytes than most symbols of gompresso-tadoc have, because a branch for longer
// ones is often predicted wrongly. (One register of 64 bytes, where there is one, is slower.)
constexpr std::size_t kChunkSize = 64;
[[gnu::always_inline]] inline void copy_chunk(std::uint8_t* target, const std::uint8_t* source) {
    copy_fixed<32>(target, source);
    copy_fixed<32>(target + 32, source + 32);
}

// Copies bytes in whole chunks: reads and writes up to kChunkSize bytes more, and at least so many.
[[gnu::always_inline]] inline void copy_chunks(std::uint8_t* target, const std::uint8_t* source,
                                               std::size_t size) {
    copy_chunk(target, source);
    for (std::size_t done = kChunkSize; done < size; done += kChunkSize) [[unlikely]] {
        copy_chunk(target + done, source + done);
    }
}

// Prefetches output that will be written soon. This saves 3% of the time if a batch is larger than
// the cache.
[[gnu::always_inline]] inline void prefetch_output(const std::uint8_t* output) {
    __builtin_prefetch(output + 1024, 1);
}

// Copies a match of any offset exactly: byte i is read after byte i - offset is written.
inline void copy_match(std::uint8_t* target, std::size_t offset, std::size_t length) {
    const std::uint8_t* source = target - offset;
    if (offset >= length) {
        std::memcpy(target, source, length);
        return;
    }
    for (std::size_t index = 0; index < length; ++index) {
        target[index] = source[index];
    }
}

// The position of the decoder in the output and in the literals.
struct CopyCursor {
    std::uint8_t* output;
    const std::uint8_t* literal;
};

// Copies one sequence with every bound checked, and advances the cursor. Returns false if the
// sequence is not valid.
inline bool copy_sequence_checked(std::size_t literal_length, std::size_t match_length,
                                  std::size_t offset, const std::uint8_t* literals_end,
                                  std::span<std::uint8_t> content, CopyCursor& at) {
    if (literal_length > static_cast<std::size_t>(literals_end - at.literal) ||
        literal_length + match_length >
            static_cast<std::size_t>(content.data() + content.size() - at.output)) {
        return false;
    }
    std::copy_n(at.literal, literal_length, at.output);
    at.literal += literal_length;
    at.output += literal_length;
    if (match_length == 0) {
        return true;
    }
    if (offset == 0 || offset > static_cast<std::size_t>(at.output - content.data())) {
        return false;
    }
    copy_match(at.output, offset, match_length);
    at.output += match_length;
    return true;
}

// Copies a match whose source is at least kMinFastOffset bytes before it, or elsewhere. May read
// and change kCopyMargin bytes after it.
[[gnu::always_inline]] inline void copy_match_fast(std::uint8_t* target, const std::uint8_t* source,
                                                   std::uint32_t length) {
    copy_fixed<16>(target, source);
    copy_fixed<16>(target + 16, source + 16);
    for (std::uint32_t done = 32; done < length; done += 32) {
        copy_fixed<16>(target + done, source + done);
        copy_fixed<16>(target + done + 16, source + done + 16);
    }
}

}  // namespace gompfs

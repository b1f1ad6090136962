// Copies files together into one text, and cuts the text into words.
//
// The text is the bytes of all files with a newline after each file, so that no word spans two
// files; newlines also fill the text up to a multiple of 32 bytes. A bitmap says which bytes belong
// to words: mark_words computes it, 32 bytes per thread. A bit that differs from the bit before it
// starts or ends a word; the k-th start and the k-th end belong to the same word. A prefix sum (by
// the caller) over count_words gives each mask the indexes that write_words writes to.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per output byte (gather_bytes) or per 32 bytes (all others).
// Reads, Writes: see each kernel.
// Shared memory: none.
// Requires: text padded with newlines to a multiple of 32 bytes; fewer than 2^32 bytes of it.
// Fails: never; bytes that are not valid UTF-8 belong to no word (rule `letters`).
// Oracle: native/grammar/tokenizer.cpp (tests/conformance/test_device_words.py).
// Caller: gompfs/gpu/words.py.
#include "shared/grid.cuh"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

namespace gompfs {

constexpr u32 kBytesOfMask = 32;
constexpr u32 kMaxCodePoint = 0x10ffff;
constexpr u32 kLetters = 1, kIdentifiers = 2;  // numbers of word rules; the rest is `whitespace`

__device__ inline bool is_space(u32 byte) { return byte == ' ' || byte - '\t' <= '\r' - '\t'; }

__device__ inline bool is_in_identifier(u32 byte) {
    return (byte | 0x20) - 'a' <= 'z' - 'a' || byte - '0' <= '9' - '0' || byte == '_' ||
           byte >= 0x80;
}

// Returns the length of the UTF-8 character that begins at a byte if the character belongs to
// words, else 0. `characters` has a bit for each code point. Bytes after the text's end belong to
// no character.
__device__ inline u32 word_character(const u8* text, u64 size, u64 at, const u8* characters) {
    const u32 first = text[at];
    u32 code_point = first, length = 1;
    if (first >= 0x80) {
        length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
        if (first < 0xc2 || first > 0xf4 || size - at < length) {
            return 0;
        }
        code_point = first & (0xffu >> (length + 1));
        for (u32 index = 1; index < length; ++index) {
            const u32 byte = text[at + index];
            if ((byte & 0xc0) != 0x80) {
                return 0;
            }
            code_point = code_point << 6 | (byte & 0x3f);
        }
        const u32 least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
        if (code_point < least || code_point > kMaxCodePoint ||
            (code_point >= 0xd800 && code_point < 0xe000)) {
            return 0;
        }
    }
    return (characters[code_point / 8] >> (code_point % 8) & 1) != 0 ? length : 0;
}

// The word bits of 32 bytes of text under the rule `letters`. The first byte may be inside a
// character that began before.
__device__ inline u32 mask_of_characters(const u8* text, u64 size, u64 base, const u8* characters) {
    u64 mask = 0;  // bit 3 is the first of the 32 bytes
    for (u64 at = base < 3 ? 0 : base - 3; at < base + kBytesOfMask && at < size; ++at) {
        const u32 length = word_character(text, size, at, characters);
        mask |= ((1ull << length) - 1) << (at + 3 - base);
    }
    return static_cast<u32>(mask >> 3);
}

// The word bits of 32 bytes of text for a predicate that says which bytes belong to words.
template <typename IsInWord>
__device__ inline u32 mask_of_bytes(const u8* text, u64 base, IsInWord&& is_in_word) {
    u32 mask = 0;
    for (u32 index = 0; index < kBytesOfMask; ++index) {
        mask |= static_cast<u32>(is_in_word(text[base + index])) << index;
    }
    return mask;
}

// The bits of a mask that differ from the previous bit; the bit before the first is the last one of
// the previous mask.
__device__ inline u32 changes(const u32* masks, u64 index) {
    const u32 carry = index == 0 ? 0 : masks[index - 1] >> 31;
    return masks[index] ^ (masks[index] << 1 | carry);
}

}  // namespace gompfs

// Copies runs of bytes to ascending offsets of an output of `size` bytes. Bytes of the output that
// belong to no run become newlines.
// Mapping: a thread per byte of the output; it finds its run in `offsets` by binary search.
extern "C" __global__ void gather_bytes(const u8* source, const u64* source_offsets,
                                        const u64* offsets, const u64* sizes, u64 num_runs,
                                        u8* output, u64 size) {
    gompfs::for_each_index(0, size, [&](u64 at) {
        u8 byte = '\n';
        if (num_runs != 0 && offsets[0] <= at) {
            const u64 run = gompfs::find_last(offsets, num_runs, at);
            if (at - offsets[run] < sizes[run]) {
                byte = source[source_offsets[run] + (at - offsets[run])];
            }
        }
        output[at] = byte;
    });
}

// Sets has_nul[file] to 1 if a NUL is among the first 8192 bytes of a file. The file's sizes[file]
// bytes begin at offsets[file].
// Mapping: a thread per 32 bytes of these 8192 bytes, for each file.
extern "C" __global__ void find_nuls(const u8* source, const u64* offsets, const u64* sizes,
                                     u64 num_files, u32* has_nul) {
    constexpr u64 kProbeSize = 8192;
    constexpr u64 kStep = 32;
    gompfs::for_each_index(0, num_files * (kProbeSize / kStep), [&](u64 index) {
        const u64 file = index / (kProbeSize / kStep);
        const u64 begin = index % (kProbeSize / kStep) * kStep;
        for (u64 at = begin; at < begin + kStep && at < sizes[file]; ++at) {
            if (source[offsets[file] + at] == 0) {
                has_nul[file] = 1;
            }
        }
    });
}

// Computes masks[i], the word bits of 32 bytes. Only the rule `letters` reads `characters`.
// Mapping: a thread per mask.
extern "C" __global__ void mark_words(const u8* text, u64 size, u32 rule, const u8* characters,
                                      u32* masks) {
    const u64 num_masks = (size + gompfs::kBytesOfMask - 1) / gompfs::kBytesOfMask;
    gompfs::for_each_index(0, num_masks, [&](u64 index) {
        const u64 base = index * gompfs::kBytesOfMask;
        if (rule == gompfs::kLetters) {
            masks[index] = gompfs::mask_of_characters(text, size, base, characters);
        } else if (rule == gompfs::kIdentifiers) {
            masks[index] = gompfs::mask_of_bytes(
                text, base, [](u32 byte) { return gompfs::is_in_identifier(byte); });
        } else {
            masks[index] =
                gompfs::mask_of_bytes(text, base, [](u32 byte) { return !gompfs::is_space(byte); });
        }
    });
}

// Sets counts[i] to the number of words that begin in the bytes of mask i.
// Mapping: a thread per mask.
extern "C" __global__ void count_words(const u32* masks, u64 num_masks, u32* counts) {
    gompfs::for_each_index(0, num_masks, [&](u64 index) {
        counts[index] = __popc(gompfs::changes(masks, index) & masks[index]);
    });
}

// Writes where words begin and end. ends_of_counts[i] is the number of words that begin up to the
// end of mask i.
// Mapping: a thread per mask, and one more for the end of the text.
extern "C" __global__ void write_words(const u32* masks, u64 num_masks, const u32* ends_of_counts,
                                       u32* starts, u32* ends) {
    gompfs::for_each_index(0, num_masks + 1, [&](u64 index) {
        u32 word = index == 0 ? 0 : ends_of_counts[index - 1];
        const bool in_word = index != 0 && masks[index - 1] >> 31 != 0;
        u32 ended = word - in_word;
        const u32 base = static_cast<u32>(index * gompfs::kBytesOfMask);
        if (index == num_masks) {
            if (in_word) {
                ends[ended] = base;
            }
            return;
        }
        for (u32 bits = gompfs::changes(masks, index); bits != 0; bits &= bits - 1) {
            const u32 bit = static_cast<u32>(__ffs(bits)) - 1;
            if ((masks[index] >> bit & 1) != 0) {
                starts[word++] = base + bit;
            } else {
                ends[ended++] = base + bit;
            }
        }
    });
}

// Numbers the words of each part of a text in the order of their first occurrence in the part.
//
// A token is one occurrence of a word in the text; entries[token] is the number of its word among
// the different words of all parts. The tokens of part p begin at part_tokens[p]; the number of all
// tokens follows the last part. The first token of each word is found by an atomic minimum, a
// prefix sum over these first tokens (by the caller) gives the numbers, and each token takes the
// number of its word.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per token.
// Reads, Writes: see each kernel.
// Shared memory: none.
// Requires: fewer than 2^32 - 1 tokens; entries[token] < num_entries; firsts has num_parts *
//   num_entries elements.
// Fails: never.
// Oracle: native/grammar/tokenizer.cpp (tests/conformance/test_grammar_kernels_on_host.py,
//   tests/grammar/test_gpu_grammars.py).
// Caller: number_words in gompfs/gpu/tokens.py.
#include "shared/grid.cuh"

using gompfs::u32;
using gompfs::u64;

namespace gompfs {

// The index of the last of `count` ascending bounds that is not above a token.
__device__ inline u64 last_bound(const u32* bounds, u64 count, u64 token) {
    u64 begin = 0, end = count;
    while (end - begin > 1) {
        const u64 middle = begin + (end - begin) / 2;
        (bounds[middle] <= token ? begin : end) = middle;
    }
    return begin;
}

// The index of a token's word in an array with one element for each word of each part.
__device__ inline u64 first_index_of(const u32* entries, const u32* part_tokens, u64 num_parts,
                                     u64 num_entries, u64 token) {
    return last_bound(part_tokens, num_parts, token) * num_entries + entries[token];
}

}  // namespace gompfs

// Finds the first token of each word of each part. `firsts` must be 0xffffffff before.
// Mapping: a thread per token.
extern "C" __global__ void find_first_tokens(const u32* entries, u64 num_tokens,
                                             const u32* part_tokens, u64 num_parts, u64 num_entries,
                                             u32* firsts) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        u32* const first =
            firsts + gompfs::first_index_of(entries, part_tokens, num_parts, num_entries, token);
        // The first token of a frequent word is found early; after that, reading it is enough.
        if (*static_cast<volatile u32*>(first) > token) {
            atomicMin(first, static_cast<u32>(token));
        }
    });
}

// Sets is_first[token] to 1 for the first token of each word of each part, to 0 for others.
// Mapping: a thread per token.
extern "C" __global__ void mark_first_tokens(const u32* entries, u64 num_tokens,
                                             const u32* part_tokens, u64 num_parts, u64 num_entries,
                                             const u32* firsts, u32* is_first) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        is_first[token] =
            firsts[gompfs::first_index_of(entries, part_tokens, num_parts, num_entries, token)] ==
            token;
    });
}

// Writes each token's word number to `symbols`, and leaves one element free after each file.
// before_ends[file] is the number of tokens up to the end of the file. numbers[token] is the number
// of first tokens up to and including this token.
// Mapping: a thread per token.
extern "C" __global__ void write_symbols(const u32* entries, u64 num_tokens, const u32* part_tokens,
                                         u64 num_parts, u64 num_entries, const u32* firsts,
                                         const u32* numbers, const u32* before_ends, u64 num_files,
                                         u32* symbols) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        const u64 index =
            gompfs::first_index_of(entries, part_tokens, num_parts, num_entries, token);
        const bool is_in_first_file = before_ends[0] > token;
        const u64 file =
            is_in_first_file ? 0 : gompfs::last_bound(before_ends, num_files, token) + 1;
        symbols[token + file] = numbers[firsts[index]] - 1;
    });
}

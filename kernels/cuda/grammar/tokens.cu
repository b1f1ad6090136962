// Numbers the words of each part of a text by their first tokens in it.
//
// A token is a word at its place in the text; entries[token] says which of the words of all parts
// it is. Tokens of part p begin with part_tokens[p]; the end follows the last.
//
// Launch: CTAs of any size, any number of them. No shared memory.
#include "grammar/forest.cuh"

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

// Where a word of a part is in an array of all of them.
__device__ inline u64 place_of(const u32* entries, const u32* part_tokens, u64 num_parts,
                               u64 num_entries, u64 token) {
    return last_bound(part_tokens, num_parts, token) * num_entries + entries[token];
}

}  // namespace gompfs

// firsts gets the first token of each word of each part; it is 0xffffffff at the start.
// Mapping: a thread for each token.
extern "C" __global__ void find_first_tokens(const u32* entries, u64 num_tokens,
                                             const u32* part_tokens, u64 num_parts, u64 num_entries,
                                             u32* firsts) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        u32* const first =
            firsts + gompfs::place_of(entries, part_tokens, num_parts, num_entries, token);
        // A word that is frequent has its first token soon, and then it is only looked at.
        if (*static_cast<volatile u32*>(first) > token) {
            atomicMin(first, static_cast<u32>(token));
        }
    });
}

// is_first[token] becomes 1 for these, 0 for others.
// Mapping: a thread for each token.
extern "C" __global__ void mark_first_tokens(const u32* entries, u64 num_tokens,
                                             const u32* part_tokens, u64 num_parts, u64 num_entries,
                                             const u32* firsts, u32* is_first) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        is_first[token] =
            firsts[gompfs::place_of(entries, part_tokens, num_parts, num_entries, token)] == token;
    });
}

// symbols gets the numbers of all tokens, with a place left free behind each file:
// before_ends[file] is how many tokens there are up to its end. numbers[token] is how many words
// have their first token up to and with this one. Mapping: a thread for each token.
extern "C" __global__ void place_symbols(const u32* entries, u64 num_tokens, const u32* part_tokens,
                                         u64 num_parts, u64 num_entries, const u32* firsts,
                                         const u32* numbers, const u32* before_ends, u64 num_files,
                                         u32* symbols) {
    gompfs::for_each_index(0, num_tokens, [&](u64 token) {
        const u64 place = gompfs::place_of(entries, part_tokens, num_parts, num_entries, token);
        const bool is_in_first_file = before_ends[0] > token;
        const u64 file =
            is_in_first_file ? 0 : gompfs::last_bound(before_ends, num_files, token) + 1;
        symbols[token + file] = numbers[firsts[place]] - 1;
    });
}

// Head and tail buffers of rules, and the words around an element (TADOC section 4; G-TADOC, Zhang
// et al., ICDE 2021, section 4.3).
#pragma once

#include "statistics/forest.cuh"

namespace gompfs {

constexpr u32 kMaxContext = 4;  // n - 1 words

// The head and tail buffers of all nodes, indexed by node and word.
struct Ends {
    u32 capacity;  // n - 1
    u32* heads;    // only the first sizes[node] words of a node's buffer are valid
    u32* tails;
    u32* sizes;

    __device__ u32* head(u32 node) const { return heads + static_cast<u64>(node) * capacity; }
    __device__ u32* tail(u32 node) const { return tails + static_cast<u64>(node) * capacity; }
};

// The words from which the n-grams ending in an element are made: the last n - 1 words before the
// element in its node, then the first words of the element itself. capacity must not be 0.
struct Context {
    u32 words[2 * kMaxContext];
    u32 num_before, num_inside;

    __device__ Context(const u64* starts, const u32* elements, const Ends& ends, u32 node,
                       u64 index) {
        u32 before[kMaxContext];
        num_before = 0;
        for (u64 at = index; at > starts[node] && num_before < ends.capacity; --at) {
            const u32 element = elements[at - 1];
            const u32 child = element & ~kNode;
            const bool is_word = (element & kNode) == 0;
            for (u32 left = is_word ? 1 : ends.sizes[child]; left > 0 && num_before < ends.capacity;
                 --left) {
                before[num_before++] = is_word ? element : ends.tail(child)[left - 1];
            }
        }
        for (u32 word = 0; word < num_before; ++word) {
            words[word] = before[num_before - 1 - word];
        }
        const u32 element = elements[index];
        const u32 child = element & ~kNode;
        const bool is_word = (element & kNode) == 0;
        num_inside = is_word ? 1 : ends.sizes[child];
        for (u32 word = 0; word < num_inside; ++word) {
            words[num_before + word] = is_word ? element : ends.head(child)[word];
        }
    }

    // The number of n-grams that end in the element: of the words collected, an n-gram ends at each
    // but the first n - 1.
    __device__ u32 num_ngrams(u32 capacity) const {
        const u32 size = num_before + num_inside;
        return size > capacity ? size - capacity : 0;
    }
};

}  // namespace gompfs

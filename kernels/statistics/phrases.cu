// Counts a phrase in the nodes of a forest, by head and tail buffers, as ngrams.cu lists n-grams.
//
// An occurrence belongs to the lowest node that contains it whole, and to the element of that node
// in which its last word lies. It begins before this element, so the first word of the element is
// one of its words but not the first one. Few elements begin so; the others end here.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per element; a thread takes several if there are more.
// Reads: the forest (starts, elements), the buffers of the rules, the words of the phrase.
// Writes: counts, which the caller has set to 0.
// Shared memory: none.
// Requires: 1 <= length <= capacity + 1 <= kMaxContext + 1; no element expands to zero words. For
//   length 1, heads, tails and sizes are not used.
// Fails: never.
// Oracle: native/statistics/overlap.cpp (tests/statistics/test_resident_text.py).
// Caller: gompfs/statistics/gpu/resident_forest.py.
#include "statistics/ends.cuh"

namespace gompfs {

// The number of occurrences that end in the element and begin before it.
__device__ inline u32 count_in(const Context& context, const u32* phrase, u32 length) {
    u32 count = 0;
    const u32 num_words = context.num_before + context.num_inside;
    for (u32 begin = 0; begin < context.num_before && begin + length <= num_words; ++begin) {
        u32 equal = 0;
        while (equal < length && context.words[begin + equal] == phrase[equal]) {
            ++equal;
        }
        count += equal == length && begin + length > context.num_before;
    }
    return count;
}

__device__ inline bool is_inside(u32 word, const u32* phrase, u32 length) {
    for (u32 index = 1; index < length; ++index) {
        if (phrase[index] == word) {
            return true;
        }
    }
    return false;
}

}  // namespace gompfs

using gompfs::u32;
using gompfs::u64;

// Adds to counts[node] how often the phrase of `length` words occurs in a node, except inside of
// its elements.
extern "C" __global__ void count_phrase(const u64* starts, u64 num_nodes, const u32* elements,
                                        u64 num_elements, const u32* phrase, u32 length,
                                        u32 capacity, u32* heads, u32* tails, u32* sizes,
                                        u64* counts) {
    const gompfs::Ends ends{capacity, heads, tails, sizes};
    gompfs::for_each_index(0, num_elements, [&](u64 index) {
        const u32 element = elements[index];
        const bool is_word = (element & gompfs::kNode) == 0;
        u32 count = is_word && length == 1 && element == phrase[0];
        u32 node = 0;
        if (length > 1) {
            const u32 first = is_word ? element : ends.head(element & ~gompfs::kNode)[0];
            if (!gompfs::is_inside(first, phrase, length)) {
                return;
            }
            node = static_cast<u32>(gompfs::find_last(starts, num_nodes, index));
            count = gompfs::count_in(gompfs::Context(starts, elements, ends, node, index), phrase,
                                     length);
        } else if (count != 0) {
            node = static_cast<u32>(gompfs::find_last(starts, num_nodes, index));
        }
        if (count != 0) {
            atomicAdd(&counts[node], static_cast<u64>(count));
        }
    });
}

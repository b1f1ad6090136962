// Finds the n-grams of a forest's nodes by means of head and tail buffers (TADOC section 4;
// G-TADOC, Zhang et al., ICDE 2021, section 4.3).
//
// First phase (find_ends): every rule gets its first and its last n - 1 words, or all its words if
// it has fewer. Rules without children come first, then level by level upwards. Second phase
// (count_ngrams, write_ngrams): an n-gram belongs to the lowest node that contains it whole, and to
// the element of that node in which its last word lies. To list the n-grams of an element, only the
// head of the element and the tails of the elements before it are needed. So every element is one
// thread's work, and no rule is expanded.
//
// Launch: CTAs of any size, any number of them; find_ends_of_levels: one CTA.
// Mapping: a thread per node (find_ends) or per element (count_ngrams, write_ngrams).
// Reads: the forest (starts, elements), the buffers of the nodes below.
// Writes: heads, tails, sizes (first phase); counts, or keys and nodes (second phase).
// Shared memory: none.
// Requires: 1 <= capacity <= kMaxContext; no element expands to zero words; n words of `bits` bits
//   fit in 128 bits.
// Fails: never.
// Oracle: native/statistics/ngrams.cpp (tests/statistics/test_device_traversal.py).
// Caller: DeviceForest in gompfs/statistics/gpu/forest.py.
#include "statistics/ends.cuh"

namespace gompfs {

__device__ inline void find_ends(const u64* starts, const u32* elements, const Ends& ends,
                                 u32 node) {
    const u64 begin = starts[node], end = starts[node + u64{1}];
    u32 words[kMaxContext];
    u32 size = 0;
    for (u64 at = begin; at < end && size < ends.capacity; ++at) {
        const u32 element = elements[at];
        const u32 child = element & ~kNode;
        const bool is_word = (element & kNode) == 0;
        const u32 more = is_word ? 1 : ends.sizes[child];
        for (u32 word = 0; word < more && size < ends.capacity; ++word) {
            words[size++] = is_word ? element : ends.head(child)[word];
        }
    }
    for (u32 word = 0; word < size; ++word) {
        ends.head(node)[word] = words[word];
    }
    u32 last = 0;  // number of words of the tail so far, collected from its end
    for (u64 at = end; at > begin && last < ends.capacity; --at) {
        const u32 element = elements[at - 1];
        const u32 child = element & ~kNode;
        const bool is_word = (element & kNode) == 0;
        for (u32 left = is_word ? 1 : ends.sizes[child]; left > 0 && last < ends.capacity; --left) {
            words[last++] = is_word ? element : ends.tail(child)[left - 1];
        }
    }
    for (u32 word = 0; word < last; ++word) {
        ends.tail(node)[word] = words[last - 1 - word];
    }
    ends.sizes[node] = size;
}

// A number of 128 bits; push() shifts a word in from below.
struct NgramKey {
    u64 high = 0, low = 0;

    __device__ void push(u32 bits, u32 word) {
        high = bits == 0 ? high : high << bits | low >> (64 - bits);
        low = low << bits | word;
    }
};

// The last word of an n-gram is encoded by its rank in byte order, the words before it by
// inner_ranks (the order in which a word sorts when another word follows it). inner_ranks is
// null if both orders are the same.
__device__ inline NgramKey key_of(const Context& context, u32 ngram, u32 capacity, u32 bits,
                                  const u32* inner_ranks) {
    NgramKey key;
    for (u32 word = 0; word <= capacity; ++word) {
        const u32 rank = context.words[ngram + word];
        key.push(bits, inner_ranks == nullptr || word == capacity ? rank : inner_ranks[rank]);
    }
    return key;
}

}  // namespace gompfs

using gompfs::u32;
using gompfs::u64;

// Finds heads, tails and their sizes for nodes[begin .. end); the children of these nodes must have
// theirs.
// Mapping: a thread per node; it visits at most n - 1 elements from either end.
extern "C" __global__ void find_ends(const u64* starts, const u32* elements, const u32* nodes,
                                     u64 begin, u64 end, u32 capacity, u32* heads, u32* tails,
                                     u32* sizes) {
    const gompfs::Ends ends{capacity, heads, tails, sizes};
    gompfs::for_each_index(
        begin, end, [&](u64 index) { gompfs::find_ends(starts, elements, ends, nodes[index]); });
}

// As find_ends, for consecutive levels: level i has the nodes in [level_starts[i], level_starts[i +
// 1]).
// Launch: one CTA.
extern "C" __global__ void __launch_bounds__(1024)
    find_ends_of_levels(const u64* starts, const u32* elements, const u32* nodes,
                        const u64* level_starts, u64 first_level, u64 last_level, u32 capacity,
                        u32* heads, u32* tails, u32* sizes) {
    const gompfs::Ends ends{capacity, heads, tails, sizes};
    for (u64 level = first_level; level < last_level; ++level) {
        gompfs::for_each_index(level_starts[level], level_starts[level + 1], [&](u64 index) {
            gompfs::find_ends(starts, elements, ends, nodes[index]);
        });
        __syncthreads();
    }
}

// Sets counts[i] to the number of n-grams that end in element i.
// Mapping: a thread per element.
extern "C" __global__ void count_ngrams(const u64* starts, const u32* elements,
                                        const u32* node_of_elements, u64 num_elements, u32 capacity,
                                        u32* heads, u32* tails, u32* sizes, u32* counts) {
    const gompfs::Ends ends{capacity, heads, tails, sizes};
    gompfs::for_each_index(0, num_elements, [&](u64 index) {
        const gompfs::Context context(starts, elements, ends, node_of_elements[index], index);
        counts[index] = context.num_ngrams(capacity);
    });
}

// Writes the n-grams that end in element i, from index ngram_starts[i] on: the two halves of each
// key, and the node that the n-gram belongs to.
// Mapping: a thread per element.
extern "C" __global__ void write_ngrams(const u64* starts, const u32* elements,
                                        const u32* node_of_elements, u64 num_elements, u32 capacity,
                                        u32* heads, u32* tails, u32* sizes, u32 bits,
                                        const u32* inner_ranks, const u64* ngram_starts,
                                        u64* high_keys, u64* low_keys, u32* nodes) {
    const gompfs::Ends ends{capacity, heads, tails, sizes};
    gompfs::for_each_index(0, num_elements, [&](u64 index) {
        const u32 node = node_of_elements[index];
        const gompfs::Context context(starts, elements, ends, node, index);
        const u32 num_ngrams = context.num_ngrams(capacity);
        for (u32 ngram = 0; ngram < num_ngrams; ++ngram) {
            const gompfs::NgramKey key =
                gompfs::key_of(context, ngram, capacity, bits, inner_ranks);
            const u64 out = ngram_starts[index] + ngram;
            high_keys[out] = key.high;
            low_keys[out] = key.low;
            nodes[out] = node;
        }
    });
}

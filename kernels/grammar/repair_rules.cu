// Keeps the rules of batch Re-Pair that pay, and writes them part by part; repair.cu explains the
// layout of parts, words and rules.
//
// count_uses, measure_rules and dissolve_rules dissolve the rules that do not pay, one launch per
// round of rules, because rules use rules of earlier rounds only. measure_symbols, number_rules and
// write_rules write the rules that are kept, numbered within their parts.
//
// Launch: CTAs of any size with one thread per item.
// Mapping: see each kernel.
// Reads, Writes: see each kernel; all arrays are in device memory.
// Shared memory: none.
// Requires: every part ends with a splitter; fewer than 2^31 symbols, words and rules together.
// Fails: never.
// Oracle: native/grammar/repair.cpp (tests/conformance/test_grammar_kernels_on_host.py,
//   tests/grammar/test_gpu_grammars.py).
// Caller: gompfs/gpu/repair.py.
#include "grammar/repair.cuh"

namespace gompfs {

// The number of elements of `ascending` that are not above `value`.
__device__ inline u32 upper_bound(const u32* ascending, u32 size, u32 value) {
    u32 low = 0, high = size;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (ascending[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// A rule that is used fewer than two times is dissolved: its content replaces it where it is used.
__device__ inline bool is_dissolved(u32 symbol, u32 num_words, const u32* uses) {
    return symbol >= num_words && symbol != kSplitter && uses[symbol - num_words] < 2;
}

__device__ inline u32 length_of(u32 symbol, u32 num_words, const u32* uses, const u32* lengths) {
    return is_dissolved(symbol, num_words, uses) ? lengths[symbol - num_words] : 1;
}

}  // namespace gompfs

// Counts how often each rule is used in `symbols`.
// Mapping: a thread per symbol.
extern "C" __global__ void count_uses(const unsigned int* symbols, unsigned int size,
                                      unsigned int num_words, unsigned int* uses) {
    using namespace gompfs;
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= size) {
        return;
    }
    const u32 symbol = symbols[position] & ~kUnique;
    if (symbol >= num_words && symbol != kSplitter) {
        atomicAdd(&uses[symbol - num_words], 1u);
    }
}

// Sets lengths[rule] to the number of symbols that a rule of this round has after rules used fewer
// than two times are dissolved. Rules of earlier rounds must have been measured.
// Mapping: a thread per rule.
extern "C" __global__ void measure_rules(const unsigned int* rules, unsigned int begin,
                                         unsigned int end, unsigned int num_words,
                                         const unsigned int* uses, unsigned int* lengths) {
    using namespace gompfs;
    const u32 rule = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (rule < end) {
        lengths[rule] = length_of(rules[2 * static_cast<u64>(rule)], num_words, uses, lengths) +
                        length_of(rules[2 * static_cast<u64>(rule) + 1], num_words, uses, lengths);
    }
}

// Dissolves the rules of a round that do not pay: rules used once, and short rules used two or
// three times. Sets their uses to 0 and adds their uses to the rules that they use. Rules of later
// rounds must have been processed.
// Mapping: a thread per rule.
extern "C" __global__ void dissolve_rules(const unsigned int* rules, unsigned int begin,
                                          unsigned int end, unsigned int num_words,
                                          unsigned int* uses, const unsigned int* lengths) {
    using namespace gompfs;
    const u32 rule = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (rule >= end) {
        return;
    }
    const u32 num_uses = uses[rule];
    const u64 saved = static_cast<u64>(num_uses) * (lengths[rule] - 1);
    if (num_uses >= 2 && saved > static_cast<u64>(lengths[rule]) + 1) {
        return;
    }
    uses[rule] = 0;
    for (u64 half = 2 * static_cast<u64>(rule); half < 2 * static_cast<u64>(rule) + 2; ++half) {
        if (rules[half] >= num_words) {
            atomicAdd(&uses[rules[half] - num_words], num_uses - 1);
        }
    }
}

// Sets sizes[position] to the number of symbols that a symbol of a root becomes.
// Mapping: a thread per symbol.
extern "C" __global__ void measure_symbols(const unsigned int* symbols, unsigned int size,
                                           unsigned int num_words, const unsigned int* uses,
                                           const unsigned int* lengths, unsigned int* sizes) {
    using namespace gompfs;
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position < size) {
        sizes[position] = length_of(symbols[position] & ~kUnique, num_words, uses, lengths);
    }
}

// Numbers the kept rules of each part after the part's root, from the last rule down. The rules of
// part p of round r form range r * num_parts + p, which begins at range_starts of that index.
// range_bases[range] is the number of the range's last kept rule among the rules of all parts.
// kept_up_to[rule] is the number of kept rules up to and including a rule. Sets number_of (by
// rule), rule_at and lengths_at (by number). Mapping: a thread per rule.
extern "C" __global__ void number_rules(unsigned int num_rules, const unsigned int* range_starts,
                                        unsigned int num_ranges, const unsigned int* range_bases,
                                        const unsigned int* uses, const unsigned int* kept_up_to,
                                        const unsigned int* lengths, unsigned int* number_of,
                                        unsigned int* rule_at, unsigned int* lengths_at) {
    using namespace gompfs;
    const u32 rule = blockIdx.x * blockDim.x + threadIdx.x;
    if (rule >= num_rules || uses[rule] < 2) {
        return;
    }
    const u32 range = part_of(range_starts, num_ranges, rule);
    const u32 last = range_starts[range + 1] - 1;
    const u32 number = range_bases[range] + (kept_up_to[last] - kept_up_to[rule]);
    number_of[rule] = number;
    rule_at[number] = rule;
    lengths_at[number] = lengths[rule];
}

// Writes the rules of all parts one after another, each part's root first, with the part's own
// numbers. rule_ends gives where each rule ends in the output, root_numbers the number of each
// part's root among the rules. symbol_ends gives where the expansion of each symbol of the roots
// would end if all roots were one array; part_starts where each root starts among these symbols.
// Mapping: a thread per symbol of the output; it searches for its rule, then descends through
//   dissolved rules to its symbol.
extern "C" __global__ void write_rules(const unsigned int* symbols, const unsigned int* symbol_ends,
                                       unsigned int num_symbols, const unsigned int* part_starts,
                                       const unsigned int* root_numbers, unsigned int num_parts,
                                       const unsigned int* word_bases, unsigned int num_words,
                                       const unsigned int* rules, const unsigned int* uses,
                                       const unsigned int* lengths, const unsigned int* number_of,
                                       const unsigned int* rule_at, const unsigned int* rule_ends,
                                       unsigned int num_rules, unsigned int* output,
                                       unsigned int size) {
    using namespace gompfs;
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) {
        return;
    }
    const u32 number = upper_bound(rule_ends, num_rules, at);
    const u32 part = part_of(root_numbers, num_parts, number);
    u32 symbol, ahead = at - (number == 0 ? 0 : rule_ends[number - 1]);
    const auto half_that_leads_there = [&](u32 rule) {
        const u32 left = rules[2 * static_cast<u64>(rule)];
        const u32 length = length_of(left, num_words, uses, lengths);
        const bool goes_left = ahead < length;
        ahead -= goes_left ? 0 : length;
        return goes_left ? left : rules[2 * static_cast<u64>(rule) + 1];
    };
    if (number == root_numbers[part]) {
        const u32 start = part_starts[part];
        ahead += start == 0 ? 0 : symbol_ends[start - 1];
        const u32 position = upper_bound(symbol_ends, num_symbols, ahead);
        ahead -= position == 0 ? 0 : symbol_ends[position - 1];
        symbol = symbols[position] & ~kUnique;
    } else {
        symbol = half_that_leads_there(rule_at[number]);
    }
    while (is_dissolved(symbol, num_words, uses)) {
        symbol = half_that_leads_there(symbol - num_words);
    }
    const u32 words_of_part = word_bases[part + 1] - word_bases[part];
    output[at] = symbol == kSplitter ? kSplitter
                 : symbol < num_words
                     ? symbol - word_bases[part]
                     : words_of_part + number_of[symbol - num_words] - root_numbers[part];
}

// Batch Re-Pair of many parts at once, the device version of the builder `repair`. It gives exactly
// the rules that native/grammar/repair.cpp gives, with the same numbers. (Re-Pair: Larsson and
// Moffat, "Off-line dictionary-based compression", Proc. IEEE 88(11), 2000. Here each round
// replaces many digrams.)
//
// Layout
//
// The parts follow each other in one array of symbols; each part ends with a splitter, so no digram
// spans two parts. Words are numbered through all parts, and rules after all words, so a digram of
// one part never equals a digram of another. Each part has its own range of the hash table of
// digrams.
//
// A round
//
// count_digrams counts the digrams in the hash table. find_frequencies looks up the frequency of
// each position. choose_occurrences chooses positions that are locally the most frequent and do not
// overlap; where the CPU walks from left to right, each thread here decides from the neighbourhood
// of its position. count_results and a prefix sum by the caller give each tile its first rule and
// symbol. make_rules makes a rule of each digram that was chosen at least twice, in the order of
// first occurrence. replace_digrams writes the shorter array of symbols.
//
// After the last round, the kernels of repair_rules.cu keep the rules that pay.
//
// Launch: kernels "by tiles" (find_frequencies to replace_digrams): one CTA of kTileThreads threads
//   per kTileItems symbols, with kTileBytes of shared memory. count_digrams: CTAs of any size with
//   one thread per symbol.
// Mapping: see each kernel.
// Reads, Writes: see each kernel; all arrays are in device memory.
// Shared memory: TileShared for kernels by tiles, none for count_digrams.
// Requires: every part ends with a splitter; fewer than 2^31 symbols, words and rules together.
// Fails: never.
// Oracle: native/grammar/repair.cpp (tests/conformance/test_grammar_kernels_on_host.py,
//   tests/grammar/test_gpu_grammars.py).
// Caller: gompfs/gpu/repair.py.
#include "grammar/repair.cuh"
#include "shared/cta_scan.cuh"

namespace gompfs {

constexpr u32 kNoSlot = 0xffffffff;
constexpr u32 kMaxFrequency = (1u << 18) - 1;
constexpr u32 kTileBytes = 8448;  // shared memory of kernels by tiles; at least sizeof(TileShared)

// The symbols of a round, and what is known about the digram at each position. A part has two slots
// for each of its symbols: those from 2 * part_starts[part] on.
struct Round {
    const u32* symbols;
    u32 size;
    const u32* part_starts;  // num_parts + 1 elements
    u32 num_parts;
    const u32* slots;  // per position: the slot of its digram, or kNoSlot
    const u8* chosen;  // per position
    const u32* first;  // per slot: the first position at which its digram was chosen
    const u32* last;   // per slot: the last such position

    // A digram that was chosen only once is not replaced.
    __device__ bool is_replaced(u32 position) const {
        return chosen[position] != 0 && first[slots[position]] != last[slots[position]];
    }
    __device__ bool makes_rule(u32 position) const {
        return is_replaced(position) && first[slots[position]] == position;
    }
    __device__ bool is_kept(u32 position) const {  // not the right half of a replaced digram
        return position == 0 || !is_replaced(position - 1);
    }
};

struct TileShared {
    u32 values[kTileItems + 1];
    u32 scratch[kWarpsPerTile];
};
static_assert(sizeof(TileShared) <= kTileBytes, "kTileBytes");

// Calls take(position, part, rank) for the positions of this thread, kItemsPerThread consecutive
// ones. `rank` is the number of positions from the start of the array to before this one for which
// counts(position) is true. sums[t] is that number for the end of tile t.
template <class Counts, class Take>
__device__ inline void rank_positions(const Round& round, const u32* sums, uint4* shared_memory,
                                      Counts&& counts, Take&& take) {
    TileShared& shared = *reinterpret_cast<TileShared*>(shared_memory);
    const u32 begin = blockIdx.x * kTileItems + threadIdx.x * kItemsPerThread;
    u32 flags = 0;
    for (u32 item = 0; item < kItemsPerThread; ++item) {
        flags |= static_cast<u32>(begin + item < round.size && counts(begin + item)) << item;
    }
    u32 rank = scan_before(static_cast<u32>(__popc(flags)), shared.scratch, Sum());
    rank += blockIdx.x == 0 ? 0 : sums[blockIdx.x - 1];
    u32 part = part_of(round.part_starts, round.num_parts, begin);
    for (u32 item = 0; item < kItemsPerThread && begin + item < round.size; ++item) {
        part += begin + item >= round.part_starts[part + 1];
        take(begin + item, part, rank);
        rank += flags >> item & 1;
    }
}

}  // namespace gompfs

// Counts the digrams of active parts, except those that cannot repeat. keys and counts have two
// elements per symbol and must be 0 before.
// Mapping: a thread per symbol.
extern "C" __global__ void count_digrams(const unsigned int* symbols, unsigned int size,
                                         const unsigned int* part_starts, unsigned int num_parts,
                                         const unsigned int* is_active, unsigned long long* keys,
                                         unsigned int* counts, unsigned int* slots) {
    using namespace gompfs;
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= size) {
        return;
    }
    slots[position] = kNoSlot;
    const u32 left = symbols[position];
    if ((left & kUnique) != 0 || left == kSplitter) {
        return;
    }
    // Exists: the last symbol is a splitter, and it returned above.
    const u32 right = symbols[position + 1] & ~kUnique;
    const u32 part = part_of(part_starts, num_parts, position);
    if (right == kSplitter || is_active[part] == 0) {
        return;
    }
    const u32 begin = 2 * part_starts[part], end = 2 * part_starts[part + 1];
    const u64 key = (static_cast<u64>(left) << 32 | right) + 1;
    const u64 hash = key * 0x9e3779b97f4a7c15u >> 32;
    u32 slot = begin + static_cast<u32>(hash * (end - begin) >> 32);
    // The search ends because at least half of the slots stay free.
    while (keys[slot] != key) {
        const u64 found = keys[slot] == 0 ? atomicCAS(&keys[slot], u64{0}, key) : keys[slot];
        if (found == 0 || found == key) {
            break;
        }
        slot = slot + 1 == end ? begin : slot + 1;
    }
    atomicAdd(&counts[slot], 1u);
    slots[position] = slot;
}

// Sets frequencies[position] to the number of occurrences of the position's digram, 0 for only one.
// Sets last_ascents[tile] to 1 plus the last position of the tile at which the frequency rises, 0
// if there is none.
// Mapping: by tiles.
extern "C" __global__ void find_frequencies(const unsigned int* slots, unsigned int size,
                                            const unsigned int* counts, unsigned int* frequencies,
                                            unsigned int* last_ascents) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TileShared& shared = *reinterpret_cast<TileShared*>(shared_memory);
    const u32 begin = blockIdx.x * kTileItems;
    const auto frequency = [&](u32 position) {
        const u32 count = slots[position] == kNoSlot ? 0 : counts[slots[position]];
        return count < 2 ? 0 : min(count, kMaxFrequency);
    };
    u32& last_ascent = shared.scratch[0];
    if (threadIdx.x == 0) {
        shared.values[0] = begin == 0 ? 0 : frequency(begin - 1);
        last_ascent = 0;
    }
    for (u32 item = threadIdx.x; item < kTileItems && begin + item < size; item += kTileThreads) {
        const u32 value = frequency(begin + item);
        shared.values[item + 1] = value;
        frequencies[begin + item] = value;
    }
    __syncthreads();
    u32 last = 0;
    for (u32 item = threadIdx.x; item < kTileItems && begin + item < size; item += kTileThreads) {
        last = shared.values[item] < shared.values[item + 1] ? begin + item + 1 : last;
    }
    if (last != 0) {
        atomicMax(&last_ascent, last);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        last_ascents[blockIdx.x] = last_ascent;
    }
}

// Chooses occurrences so that every other repeated digram overlaps a chosen one that is at least as
// frequent: the top of each ascent in frequency, and every second position down from it on both
// sides. `first` must be 0xffffffff and `last` 0 before.
// Mapping: by tiles; kItemsPerThread positions per thread.
//
// A position is chosen or not depending on its neighbourhood only. On the way up to a top, it is
// chosen if the top is an even number of positions ahead. On the way down, it is chosen if the
// previous top is an even number of positions back. The position at the bottom between two tops is
// chosen only if both conditions hold.
extern "C" __global__ void choose_occurrences(const unsigned int* slots, unsigned int size,
                                              const unsigned int* frequencies,
                                              const unsigned int* last_ascents,
                                              unsigned char* chosen, unsigned int* first,
                                              unsigned int* last) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TileShared& shared = *reinterpret_cast<TileShared*>(shared_memory);
    const u32 begin = blockIdx.x * kTileItems + threadIdx.x * kItemsPerThread;
    const auto ascends_to = [&](u32 position) {
        return (position == 0 ? 0 : frequencies[position - 1]) < frequencies[position];
    };
    u32 own_ascent = 0;  // position plus 1; 0 for none
    for (u32 item = 0; item < kItemsPerThread && begin + item < size; ++item) {
        own_ascent = ascends_to(begin + item) ? begin + item + 1 : own_ascent;
    }
    u32 ascent = scan_before(own_ascent, shared.scratch, Maximum());
    if (ascent == 0 && begin != 0 && begin < size && frequencies[begin - 1] != 0) {
        // The way down began in an earlier tile.
        for (u32 tile = blockIdx.x; ascent == 0 && tile > 0; --tile) {
            ascent = last_ascents[tile - 1];
        }
    }
    for (u32 item = 0; item < kItemsPerThread && begin + item < size; ++item) {
        const u32 position = begin + item;
        const u32 frequency = frequencies[position];
        bool is_chosen = frequency != 0;
        if (ascends_to(position)) {
            ascent = position + 1;
        } else if (is_chosen) {
            is_chosen = (position + 1 - ascent) % 2 == 0;
        }
        if (is_chosen) {
            u32 top = position;  // the last symbol is a splitter, of frequency 0, so the loop ends
            while (frequencies[top + 1] > frequencies[top]) {
                ++top;
            }
            is_chosen = (top - position) % 2 == 0;
        }
        chosen[position] = is_chosen;
        if (is_chosen) {
            atomicMin(&first[slots[position]], position);
            atomicMax(&last[slots[position]], position);
        }
    }
}

// Counts, for each tile, the symbols that remain after digrams are replaced, and the rules that
// this makes.
// Mapping: by tiles.
extern "C" __global__ void count_results(const unsigned int* slots, const unsigned char* chosen,
                                         const unsigned int* first, const unsigned int* last,
                                         unsigned int size, unsigned int* num_symbols,
                                         unsigned int* num_rules) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    TileShared& shared = *reinterpret_cast<TileShared*>(shared_memory);
    const Round round{nullptr, size, nullptr, 0, slots, chosen, first, last};
    const u32 begin = blockIdx.x * kTileItems;
    u32 symbols = 0, rules = 0;
    for (u32 item = threadIdx.x; item < kTileItems && begin + item < size; item += kTileThreads) {
        symbols += round.is_kept(begin + item);
        rules += round.makes_rule(begin + item);
    }
    u32* const totals = shared.scratch;
    if (threadIdx.x < 2) {
        totals[threadIdx.x] = 0;
    }
    __syncthreads();
    atomicAdd(&totals[0], symbols);
    atomicAdd(&totals[1], rules);
    __syncthreads();
    if (threadIdx.x == 0) {
        num_symbols[blockIdx.x] = totals[0];
        num_rules[blockIdx.x] = totals[1];
    }
}

// Makes the rules of a round, in the order of first occurrence. rule_sums[t] is the number of the
// round's rules up to the end of tile t. `rules` has two symbols per rule; the new rules follow
// num_rules older ones. rule_of[slot] becomes the rule's number; rules_before[part] the number of
// rules made by the parts before it.
// Mapping: by tiles.
extern "C" __global__ void make_rules(const unsigned int* symbols, unsigned int size,
                                      const unsigned int* part_starts, unsigned int num_parts,
                                      const unsigned int* slots, const unsigned char* chosen,
                                      const unsigned int* first, const unsigned int* last,
                                      const unsigned int* rule_sums, unsigned int num_rules,
                                      unsigned int* rules, unsigned int* rule_of,
                                      unsigned int* rules_before) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const Round round{symbols, size, part_starts, num_parts, slots, chosen, first, last};
    rank_positions(
        round, rule_sums, shared_memory, [&](u32 position) { return round.makes_rule(position); },
        [&](u32 position, u32 part, u32 rank) {
            if (position == part_starts[part]) {
                rules_before[part] = rank;
            }
            if (round.makes_rule(position)) {
                const u64 rule = num_rules + rank;
                rules[2 * rule] = symbols[position] & ~kUnique;
                rules[2 * rule + 1] = symbols[position + 1] & ~kUnique;
                rule_of[slots[position]] = static_cast<u32>(rule);
            }
        });
}

// Replaces the chosen digrams by their rules, and writes the remaining symbols to `replaced`.
// symbol_sums[t] is the number of remaining symbols up to the end of tile t. new_starts[part]
// becomes the part's start in `replaced`.
// Mapping: by tiles.
extern "C" __global__ void replace_digrams(const unsigned int* symbols, unsigned int size,
                                           const unsigned int* part_starts, unsigned int num_parts,
                                           const unsigned int* frequencies,
                                           const unsigned int* slots, const unsigned char* chosen,
                                           const unsigned int* first, const unsigned int* last,
                                           const unsigned int* symbol_sums,
                                           const unsigned int* rule_of, unsigned int num_words,
                                           unsigned int* replaced, unsigned int* new_starts) {
    using namespace gompfs;
    extern __shared__ uint4 shared_memory[];
    const Round round{symbols, size, part_starts, num_parts, slots, chosen, first, last};
    rank_positions(
        round, symbol_sums, shared_memory, [&](u32 position) { return round.is_kept(position); },
        [&](u32 position, u32 part, u32 rank) {
            if (position == part_starts[part]) {
                new_starts[part] = rank;
            }
            if (!round.is_kept(position)) {
                return;
            }
            if (round.is_replaced(position)) {
                replaced[rank] = num_words + rule_of[slots[position]];
                return;
            }
            const u32 symbol = symbols[position] & ~kUnique;
            const bool unique = slots[position] == kNoSlot ? (symbols[position] & kUnique) != 0
                                                           : frequencies[position] == 0;
            // If the next symbol becomes a rule, the digram here is a new one.
            const bool stays = position + 1 < size && !round.is_replaced(position + 1);
            replaced[rank] = symbol | (unique && stays && symbol != kSplitter ? kUnique : 0);
        });
}

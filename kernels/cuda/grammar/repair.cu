// Batch Re-Pair of many parts at once (docs/kernels.md): gives the rules that kernels/cpu/grammar/
// repair.cpp gives, number by number.
//
// The parts lie one behind the other in one array of symbols, each with a splitter at its end, so
// that no digram spans two. Words are numbered through all parts, rules behind them: a digram of
// one part is none of another. Kernels that cut the array into tiles are launched with a CTA of
// kTileThreads threads for each kTileItems symbols and kTileBytes of shared memory; all others with
// a thread for each item, in CTAs of any size.
#include "grammar/cta_scan.cuh"

namespace gompfs {

constexpr u32 kSplitter = 0x7fffffff;
// On a symbol: the digram that starts here is known to occur once only.
constexpr u32 kUnique = 0x80000000;
constexpr u32 kNoSlot = 0xffffffff;
constexpr u32 kMaxFrequency = (1u << 18) - 1;
constexpr u32 kTileBytes = 8448;  // shared memory: TileShared

// The part that holds a position: the last one that starts there or before.
__device__ inline u32 part_of(const u32* starts, u32 num_parts, u32 position) {
    u32 low = 0, high = num_parts;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        (starts[middle] <= position ? low : high) = middle;
    }
    return low;
}

// The number of ascending values that are not above value.
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

// The symbols of a round, and what is known of the digram at each position. Each part has twice as
// many slots for digrams as symbols: those from 2 * part_starts[part] on.
struct Round {
    const u32* symbols;
    u32 size;
    const u32* part_starts;  // num_parts + 1
    u32 num_parts;
    const u32* slots;  // per position: its digram's slot, or kNoSlot
    const u8* chosen;  // per position
    const u32* first;  // per slot: the first position where its digram was chosen
    const u32* last;   // per slot: the last one

    // A digram that was chosen once only stays as it is.
    __device__ bool is_replaced(u32 position) const {
        return chosen[position] != 0 && first[slots[position]] != last[slots[position]];
    }
    __device__ bool makes_rule(u32 position) const {
        return is_replaced(position) && first[slots[position]] == position;
    }
    __device__ bool is_kept(u32 position) const {  // not the right half of a digram
        return position == 0 || !is_replaced(position - 1);
    }
};

struct TileShared {
    u32 values[kTileItems + 1];
    u32 scratch[kWarpsPerTile];
};
static_assert(sizeof(TileShared) <= kTileBytes, "kTileBytes");

// Calls take(position, part, rank) for the positions of this thread, kItemsPerThread in a row.
// rank: how many positions before, from the beginning of the array on, counts(position) is true of;
// sums has that number for the end of every tile.
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

// Counts the digrams of the parts that are active, but for those that cannot repeat. A thread per
// symbol. keys and counts, two for each symbol, are zeros at the start.
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
    const u32 right = symbols[position + 1] & ~kUnique;  // a splitter is the last symbol of all
    const u32 part = part_of(part_starts, num_parts, position);
    if (right == kSplitter || is_active[part] == 0) {
        return;
    }
    const u32 begin = 2 * part_starts[part], end = 2 * part_starts[part + 1];
    const u64 key = (static_cast<u64>(left) << 32 | right) + 1;
    const u64 hash = key * 0x9e3779b97f4a7c15u >> 32;
    u32 slot = begin + static_cast<u32>(hash * (end - begin) >> 32);
    // Half of the slots stay free, so the search ends.
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

// How often the digram of each position occurs, 0 for once only. By tiles. last_ascents: of each
// tile, the last position where frequency rises, plus 1; 0 for none.
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

// Chooses occurrences so that every other repeated digram overlaps a chosen one at least as
// frequent: the top of each ascent in frequency, and every second position down from it on both
// sides. By tiles. first and last, per slot, are the highest number and 0 at the start.
//
// What a position is depends on its neighbourhood alone. On the way up to a top, it is chosen if
// the top is an even number of positions ahead; on the way down, if the last top is an even number
// of positions behind. At the bottom between both, which belongs to the way up only if the way down
// reaches it, it takes both.
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
    u32 own_ascent = 0;  // positions plus 1, 0 for none
    for (u32 item = 0; item < kItemsPerThread && begin + item < size; ++item) {
        own_ascent = ascends_to(begin + item) ? begin + item + 1 : own_ascent;
    }
    u32 ascent = scan_before(own_ascent, shared.scratch, Maximum());
    if (ascent == 0 && begin != 0 && begin < size && frequencies[begin - 1] != 0) {
        // A way down that began tiles ago.
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
            u32 top = position;  // the last symbol is a splitter, of frequency 0
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

// Of each tile: how many symbols are left when digrams are replaced, and how many rules that makes.
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

// Makes the rules of a round, in the order of their first occurrences. By tiles; rule_sums: how
// many rules there are up to the end of each. rules has two symbols for each rule, the round's
// behind num_rules others; rule_of, per slot, gets the rule's number; rules_before, per part, how
// many the parts before it make.
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

// Puts rules in the place of digrams. By tiles; symbol_sums: how many symbols are left up to the
// end of each. new_starts: where parts start in `replaced`.
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
            // Before a rule, the digram is a new one.
            const bool stays = position + 1 < size && !round.is_replaced(position + 1);
            replaced[rank] = symbol | (unique && stays && symbol != kSplitter ? kUnique : 0);
        });
}

// Counts how often rules are used in symbols. A thread per symbol.
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

namespace gompfs {

// Rules that are used less than twice stand for their content, in the place where they are used.
__device__ inline bool is_dissolved(u32 symbol, u32 num_words, const u32* uses) {
    return symbol >= num_words && symbol != kSplitter && uses[symbol - num_words] < 2;
}

__device__ inline u32 length_of(u32 symbol, u32 num_words, const u32* uses, const u32* lengths) {
    return is_dissolved(symbol, num_words, uses) ? lengths[symbol - num_words] : 1;
}

}  // namespace gompfs

// How many symbols the rules of a round have when those that are used less than twice are
// dissolved. A thread per rule; the rules of earlier rounds are measured.
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

// Dissolves the rules of a round that do not pay: those used once, and those that are short and
// used two or three times. What they use is used in their place; their own uses become 0. A thread
// per rule; the rules of later rounds are done.
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

// How many symbols of the root each symbol makes. A thread per symbol.
extern "C" __global__ void measure_symbols(const unsigned int* symbols, unsigned int size,
                                           unsigned int num_words, const unsigned int* uses,
                                           const unsigned int* lengths, unsigned int* sizes) {
    using namespace gompfs;
    const u32 position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position < size) {
        sizes[position] = length_of(symbols[position] & ~kUnique, num_words, uses, lengths);
    }
}

// Numbers the rules that are kept, in each part from the last one down, behind the root. A thread
// per rule. The rules of part p of round r are range r * num_parts + p, from range_starts of it on.
// range_bases: the place of the range's last rule that is kept, among the rules of all parts;
// kept_before: how many rules are kept up to each one. place_of: per rule; rule_at and lengths_at:
// per place.
extern "C" __global__ void number_rules(unsigned int num_rules, const unsigned int* range_starts,
                                        unsigned int num_ranges, const unsigned int* range_bases,
                                        const unsigned int* uses, const unsigned int* kept_up_to,
                                        const unsigned int* lengths, unsigned int* place_of,
                                        unsigned int* rule_at, unsigned int* lengths_at) {
    using namespace gompfs;
    const u32 rule = blockIdx.x * blockDim.x + threadIdx.x;
    if (rule >= num_rules || uses[rule] < 2) {
        return;
    }
    const u32 range = part_of(range_starts, num_ranges, rule);
    const u32 last = range_starts[range + 1] - 1;
    const u32 place = range_bases[range] + (kept_up_to[last] - kept_up_to[rule]);
    place_of[rule] = place;
    rule_at[place] = rule;
    lengths_at[place] = lengths[rule];
}

// Writes the rules of all parts in a row, each part's root first, with the numbers of the part. A
// thread per symbol of the output. rule_ends: where rules end in the output; part_places: the place
// of each part's root among them; symbol_ends: where what each symbol of the roots makes would end
// if all roots lay in a row; part_starts: where roots start among these symbols.
extern "C" __global__ void write_rules(const unsigned int* symbols, const unsigned int* symbol_ends,
                                       unsigned int num_symbols, const unsigned int* part_starts,
                                       const unsigned int* part_places, unsigned int num_parts,
                                       const unsigned int* word_bases, unsigned int num_words,
                                       const unsigned int* rules, const unsigned int* uses,
                                       const unsigned int* lengths, const unsigned int* place_of,
                                       const unsigned int* rule_at, const unsigned int* rule_ends,
                                       unsigned int num_places, unsigned int* output,
                                       unsigned int size) {
    using namespace gompfs;
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) {
        return;
    }
    const u32 place = upper_bound(rule_ends, num_places, at);
    const u32 part = part_of(part_places, num_parts, place);
    u32 symbol, ahead = at - (place == 0 ? 0 : rule_ends[place - 1]);
    const auto half_that_leads_there = [&](u32 rule) {
        const u32 left = rules[2 * static_cast<u64>(rule)];
        const u32 length = length_of(left, num_words, uses, lengths);
        const bool goes_left = ahead < length;
        ahead -= goes_left ? 0 : length;
        return goes_left ? left : rules[2 * static_cast<u64>(rule) + 1];
    };
    if (place == part_places[part]) {
        const u32 start = part_starts[part];
        ahead += start == 0 ? 0 : symbol_ends[start - 1];
        const u32 position = upper_bound(symbol_ends, num_symbols, ahead);
        ahead -= position == 0 ? 0 : symbol_ends[position - 1];
        symbol = symbols[position] & ~kUnique;
    } else {
        symbol = half_that_leads_there(rule_at[place]);
    }
    while (is_dissolved(symbol, num_words, uses)) {
        symbol = half_that_leads_there(symbol - num_words);
    }
    const u32 words_of_part = word_bases[part + 1] - word_bases[part];
    output[at] = symbol == kSplitter ? kSplitter
                 : symbol < num_words
                     ? symbol - word_bases[part]
                     : words_of_part + place_of[symbol - num_words] - part_places[part];
}

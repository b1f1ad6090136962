// A hash table of words, which finds out which words of a text are equal.
//
// The different words found in earlier launches are "entries"; their bytes are stored one after
// another in a pool. A slot of the table is 0 (free) or holds a tag, the high half of the word's
// hash, above 32 bits that say where the word is: the number of an entry, or with the bit kIsToken
// the number of a word of the present text; both count from 1. A slot is claimed once, by
// compare-and-swap, and never changes during a launch after that. The bytes that a slot leads to
// exist before the launch. So nothing is locked. Two words are equal if their bytes are equal; the
// hash and the tag only save comparisons.
//
// When half of the slots are taken, find_slots stops claiming slots; the caller moves the table to
// one of twice the size (move_slots, move_word_slots) and launches find_slots again for the words
// left over.
//
// Launch: CTAs of any size, any number of them.
// Mapping: a thread per word, per slot (move_slots) or per item (load_keys).
// Reads, Writes: see each kernel.
// Shared memory: none.
// Requires: num_slots is a power of two above max_taken; fewer than 2^31 words.
// Fails: find_slots sets counters[1] if the table is full; never otherwise.
// Oracle: native/grammar/word_table.h (tests/conformance/test_device_words.py).
// Caller: WordTable in gompfs/gpu/words.py.
#include "shared/grid.cuh"

using gompfs::u32;
using gompfs::u64;
using gompfs::u8;

namespace gompfs {

constexpr u32 kWithoutSlot = 0xffffffffu;
constexpr u32 kIsToken = 0x80000000u;

struct Word {
    const u8* bytes;
    u64 size;
};

// Loads up to 8 bytes of a word from offset `at` on as a number, first byte highest; zeros follow
// the word's end.
__device__ inline u64 load_chunk(const Word& word, u64 at) {
    u64 chunk = 0;
    for (u32 index = 0; index < 8; ++index) {
        chunk = chunk << 8 | (at + index < word.size ? word.bytes[at + index] : 0);
    }
    return chunk;
}

// Folds both halves of a 128-bit product into one number. Unlike the low half alone, the result
// depends on all bits of the value.
__device__ inline u64 fold(u64 value) {
    constexpr u64 kFactor = 0x9e3779b97f4a7c15ull;
    return value * kFactor ^ __umul64hi(value, kFactor);
}

// The seed is a secret of the process, so that nobody can construct a text whose words collide.
__device__ inline u64 hash_of(const Word& word, u64 seed) {
    u64 hash = fold(seed ^ word.size);
    for (u64 at = 0; at < word.size; at += 8) {
        hash = fold(hash ^ load_chunk(word, at)) ^ seed;
    }
    return fold(hash);
}

__device__ inline bool are_same(const Word& left, const Word& right) {
    if (left.size != right.size) {
        return false;
    }
    for (u64 at = 0; at < left.size; ++at) {
        if (left.bytes[at] != right.bytes[at]) {
            return false;
        }
    }
    return true;
}

// Resolves slots to the words that they hold.
struct Words {
    const u8* text;
    const u32* starts;  // of the words of the text
    const u32* ends;
    const u8* pool;
    const u64* entry_starts;  // by entry; one more than there are entries

    __device__ Word token(u64 number) const {
        return {text + starts[number], ends[number] - starts[number]};
    }
    __device__ Word of_slot(u64 slot) const {
        const u32 number = (static_cast<u32>(slot) & ~kIsToken) - 1;
        if ((slot & kIsToken) != 0) {
            return token(number);
        }
        return {pool + entry_starts[number], entry_starts[number + 1] - entry_starts[number]};
    }
};

}  // namespace gompfs

// Finds or claims the slot of each word i of the text whose word_slots[i] is kWithoutSlot, and
// stores it in word_slots[i]. counters[0] counts the claimed slots. Once it reaches max_taken no
// slot is claimed, counters[1] becomes 1, and words without a slot keep kWithoutSlot. hash_mask is
// all ones except in tests. Mapping: a thread per word.
extern "C" __global__ void find_slots(const u8* text, const u32* starts, const u32* ends,
                                      u64 num_words, const u8* pool, const u64* entry_starts,
                                      u64 seed, u64 hash_mask, u64* slots, u64 num_slots,
                                      u32 max_taken, u32* counters, u32* word_slots) {
    const gompfs::Words words{text, starts, ends, pool, entry_starts};
    gompfs::for_each_index(0, num_words, [&](u64 number) {
        if (word_slots[number] != gompfs::kWithoutSlot) {
            return;
        }
        const gompfs::Word word = words.token(number);
        const u64 hash = gompfs::hash_of(word, seed) & hash_mask;
        const u64 tag = hash >> 32 << 32;
        const u64 mine = tag | gompfs::kIsToken | (number + 1);
        u64 at = hash & (num_slots - 1);
        for (u64 tries = 0; tries < num_slots; ++tries, at = (at + 1) & (num_slots - 1)) {
            u64 slot = *const_cast<volatile u64*>(&slots[at]);
            if (slot == 0) {
                if (*const_cast<volatile u32*>(&counters[0]) >= max_taken) {
                    break;
                }
                slot = atomicCAS(&slots[at], u64{0}, mine);
                if (slot == 0) {
                    atomicAdd(&counters[0], 1u);
                    word_slots[number] = static_cast<u32>(at);
                    return;
                }
            }
            if (slot >> 32 << 32 == tag && gompfs::are_same(words.of_slot(slot), word)) {
                word_slots[number] = static_cast<u32>(at);
                return;
            }
        }
        counters[1] = 1;
    });
}

// Moves the slots of a table into a larger, empty table. moved[i] becomes the new index of slot i.
// Mapping: a thread per slot.
extern "C" __global__ void move_slots(const u8* text, const u32* starts, const u32* ends,
                                      const u8* pool, const u64* entry_starts, u64 seed,
                                      u64 hash_mask, const u64* old_slots, u64 num_old, u64* slots,
                                      u64 num_slots, u32* moved) {
    const gompfs::Words words{text, starts, ends, pool, entry_starts};
    gompfs::for_each_index(0, num_old, [&](u64 index) {
        const u64 slot = old_slots[index];
        if (slot == 0) {
            return;
        }
        u64 at = gompfs::hash_of(words.of_slot(slot), seed) & hash_mask & (num_slots - 1);
        while (atomicCAS(&slots[at], u64{0}, slot) != 0) {
            at = (at + 1) & (num_slots - 1);
        }
        moved[index] = static_cast<u32>(at);
    });
}

// Replaces the slot indexes in `word_slots` by the new indexes.
// Mapping: a thread per word.
extern "C" __global__ void move_word_slots(u64 num_words, const u32* moved, u32* word_slots) {
    gompfs::for_each_index(0, num_words, [&](u64 number) {
        if (word_slots[number] != gompfs::kWithoutSlot) {
            word_slots[number] = moved[word_slots[number]];
        }
    });
}

// Sets entries[i] to the entry of word i, whose slot is word_slots[i], and counts the entry. All
// slots must hold entries. Mapping: a thread per word.
extern "C" __global__ void count_entries(u64 num_words, const u32* word_slots, const u64* slots,
                                         u32* entries, u64* counts) {
    gompfs::for_each_index(0, num_words, [&](u64 number) {
        const u32 entry = static_cast<u32>(slots[word_slots[number]]) - 1;
        entries[number] = entry;
        atomicAdd(&counts[entry], u64{1});
    });
}

// Sets keys[i] to the 8 bytes of entry items[i] from offset `offset` on, as a number that compares
// as the bytes do. lengths[i] is the number of bytes that the entry has from there on, 9 for more
// than 8.
// Mapping: a thread per item.
extern "C" __global__ void load_keys(const u8* pool, const u64* entry_starts, const u64* items,
                                     u64 num_items, u64 offset, u64* keys, u8* lengths) {
    gompfs::for_each_index(0, num_items, [&](u64 index) {
        const u64 start = entry_starts[items[index]];
        const gompfs::Word word{pool + start, entry_starts[items[index] + 1] - start};
        keys[index] = gompfs::load_chunk(word, offset);
        const u64 rest = word.size - min(offset, word.size);
        lengths[index] = static_cast<u8>(min(rest, u64{9}));
    });
}

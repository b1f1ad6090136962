// The head of a part that one CTA opens: its fields, and the offsets of its arrays.
//
// A head is opened in five steps. (1) One warp decodes the arrays of the stream (head_arrays.cuh)
// while another one decodes the token bytes and finds the words in them (head_tokens.cuh). (2) All
// threads rank the symbols (head_ranks.cuh), (3) add up the sizes of the words and separators,
// which gives the offset of each in the pool, and (4) copy their bytes. (5) Level by level, they do
// the same for the rules (head_rules.cuh). The result is a TadocHead (tadoc_block.cuh), as the host
// would have uploaded it (gompfs/gpu/decode/head_store.py).
//
// Arrays whose sizes depend on the head are in a workspace in device memory, since a head may have
// a million symbols. gompfs/gpu/decode/head_opener.py computes the size of the workspace.
//
// Invariants
//
// - Nothing is written before the fields of the head were checked (make_plan): these bound all
//   arrays, and the workspace must have space for them.
// - Whatever a step finds is the same in all threads after the barrier that ends the step, so all
//   threads give up at the same time.
#pragma once

#include "codec/bit_block.cuh"
#include "codec/tadoc_block.cuh"
#include "shared/cta_scan.cuh"
#include "shared/format_constants.h"
#include "shared/warp.cuh"

namespace gompfs {

constexpr u32 kHeadWarps = 4;
constexpr u32 kHeadThreads = kHeadWarps * kWarpSize;
// More CTAs hide the latency of scattered loads, even if registers spill. On an H200, 8 to 12 are
// equally fast.
constexpr int kHeadCtasPerProcessor = 10;
constexpr u32 kMaxLevels = (1 << kNumLevelsBits) - 1;
constexpr u32 kMaxMaskedPrefix = 2 * kWarpSize - 1;

// Byte strings one after another: string i is bytes[starts[i]] to bytes[starts[i + 1] - 1].
struct TokenTable {
    const u32* starts;
    const u8* bytes;
    u32 count;
    u32 unused;
};

// The section `words` of a segment, which the host has checked. After this struct come the starts
// of the words, and the end of the last word. Then come the words, each with a space after it, the
// starts of the separators, and the separators: their offsets from the start of this struct are the
// fields.
struct alignas(8) StoredTokens {
    u32 num_words, num_separators;
    u64 words, separator_starts, separators;

    __device__ TokenTable word_table() const {
        return {reinterpret_cast<const u32*>(this + 1), start() + words, num_words, 0};
    }
    __device__ TokenTable separator_table() const {
        return {reinterpret_cast<const u32*>(start() + separator_starts), start() + separators,
                num_separators, 0};
    }

  private:
    __device__ const u8* start() const { return reinterpret_cast<const u8*>(this); }
};

// A head to open. Addresses are in device memory.
struct HeadTask {
    const u8* payload;  // at a multiple of 16, and readable for 256 bytes after its end
    TadocHead* head;    // has space for the expansions of all symbols, and for the pool
    u8* workspace;      // at a multiple of 256
    const StoredTokens* tokens;
    u32 payload_size;
    u32 pool_size;
    u32 num_symbols;  // that `head` has space for
    u32 workspace_size;
};

// The fields of a head, and its arrays. The same for all threads, in shared memory.
struct HeadPlan {
    const u32* payload;  // as 32-bit words
    u32 num_local_words, num_global_words, num_local_separators, num_global_separators, num_rules;
    u32 num_frequent, num_common;  // how many global words are in arrays 2 and 3
    u32 num_splitters;
    u32 token_bytes_size, stored_size;
    u32 codes_size, size_base, size_width;
    u32 pool_size;
    u32 num_tokens, num_symbols;   // tokens are words and separators
    u32 max_slots;                 // how many symbols the arrays of rules have space for
    TokenTable words, separators;  // the global ones

    // The result.
    TadocHead* head;
    u64* expansions;  // by rank
    u8* pool;

    // The workspace. Tokens and symbols are in the order of their numbers.
    u8* token_bytes;       // if they are not stored as they are
    u32* prefixes;         // by local word
    u32* word_ends;        // by local word: where its bytes end in the token bytes
    u32* separator_sizes;  // by local separator
    u32* global_numbers;   // of words, then of separators
    u32* ranks;            // by symbol
    u32* token_offsets;    // by token: its offset in the pool; then the end of the last token
    u32* first_ranks;      // by rule: the rank of its first symbol
    u32* rule_starts;  // by rule: its first slot; from the expansion of its level on, its offset
    u32* other_ranks;  // ranks of all symbols of rules but the first ones
    u32* start_bits;   // a bit by slot: whether a rule begins there
    u32* row_rules;    // by row of 32 slots: the number of rules that begin before it
    u32* row_offsets;  // by row of 32 slots: its offset in the pool
    u8* classes;       // by symbol; from the expansion of a rule on, whether it ends with a word

    __device__ u32 first_word() const { return num_splitters; }
    __device__ u32 first_rule() const { return num_splitters + num_tokens; }
    __device__ u32 codes_start() const { return kHeadHeaderSize + stored_size; }
    __device__ bool has_plain_tokens() const { return stored_size == token_bytes_size; }
    __device__ const u8* tokens() const {
        return has_plain_tokens() ? reinterpret_cast<const u8*>(payload) + kHeadHeaderSize
                                  : token_bytes;
    }
};

// Local words, one for each thread.
struct WordRows {
    u32 sources[kHeadThreads];  // where byte 0 of the word would be in the token bytes
    u32 starts[kHeadThreads];   // in the pool
    // By length: a mask of the words of each warp whose prefixes are not longer than that.
    u32 with_prefix_to[kMaxMaskedPrefix + 1][kHeadWarps];
};

// The shared memory of a CTA.
struct alignas(16) HeadShared {
    HeadPlan plan;
    u32 index;          // of the head
    u32 is_plan_valid;  // 0 or 1
    u32 num_levels;
    u32 level_rules[kMaxLevels + 1];  // the first rule of each level, and the end of the last
    u32 level_slots[kMaxLevels + 1];  // likewise in slots
    u32 tile_end;                     // of the last tile of a scan
    u32 pool_end;                     // of the bytes in the pool so far
    u32 scan[kHeadWarps];
    RowPieces pieces[kHeadWarps];
    // The steps that use these come one after another.
    union {
        struct {
            u16 class_table[kClassCodeEntries];
            u8 class_lengths[kNumClasses + 2];
            CodeScratch class_scratch;
        };
        u32 next_ranks[kHeadWarps][kNumClasses];  // by class, for the symbols of each warp
        WordRows word_rows;
    };
    TokenClass token_classes[kNumTokenSymbols];
    BitShared bit;
};

// Whether `is_bad` is true in a thread of the CTA. A barrier for all threads.
__device__ inline bool any_thread(bool is_bad) { return __syncthreads_or(is_bad) != 0; }

// Hands out arrays of the workspace.
struct WorkspaceCursor {
    u8* next;

    template <class Item>
    __device__ Item* take(u32 count) {
        Item* const array = reinterpret_cast<Item*>(next);
        next += (static_cast<u64>(count) * sizeof(Item) + 3) / 4 * 4;
        return array;
    }
};

// Reads the fixed fields of a head, and checks them. For one thread.
__device__ inline bool read_fields(const HeadTask& task, HeadPlan& plan) {
    if (task.payload_size < kHeadHeaderSize + kBitPadding || task.payload_size > kMaxHeadPayload ||
        task.pool_size == 0 || task.pool_size > kMaxPoolSize) {
        return false;
    }
    const u32* const words = reinterpret_cast<const u32*>(task.payload);
    plan.payload = words;
    plan.num_local_words = words[0];
    plan.num_global_words = words[1];
    plan.num_local_separators = words[2];
    plan.num_global_separators = words[3];
    plan.num_rules = words[4];
    plan.token_bytes_size = words[5];
    plan.stored_size = words[6];
    plan.size_base = words[7];
    plan.num_frequent = words[8] & 0xffff;
    plan.num_common = words[8] >> 16;
    plan.codes_size = words[9] & 0xffff;
    plan.size_width = words[9] >> 16 & 255;
    plan.num_splitters = words[9] >> 24;
    plan.pool_size = task.pool_size;
    const u64 num_tokens = static_cast<u64>(plan.num_local_words) + plan.num_global_words +
                           plan.num_local_separators + plan.num_global_separators;
    const u64 num_symbols = num_tokens + plan.num_rules + plan.num_splitters;
    plan.num_tokens = static_cast<u32>(num_tokens);
    plan.num_symbols = static_cast<u32>(num_symbols);
    return num_symbols != 0 && num_symbols < kMaxPartSymbols && plan.num_splitters <= 1 &&
           plan.token_bytes_size <= kMaxPoolSize && plan.stored_size <= plan.token_bytes_size &&
           plan.size_width <= kMaxSizeWidth &&
           plan.num_frequent + plan.num_common <= plan.num_global_words &&
           static_cast<u64>(plan.stored_size) + plan.codes_size <=
               task.payload_size - kHeadHeaderSize - kBitPadding;
}

// Finds the arrays of a head whose fields were checked. Returns false if the memory is too small
// for them, or if the numbers of items need more bits than the stream has. For one thread.
__device__ inline bool place_arrays(const HeadTask& task, HeadPlan& plan) {
    const u32 stream_bits =
        (task.payload_size - kBitPadding - plan.codes_start() - plan.codes_size) * 8;
    // An item takes at least one bit: all tokens but the splitter have a number and a class, and
    // rules have two numbers and a class. Each symbol of a rule adds at least one byte to the pool.
    const u32 num_items = 2 * plan.num_symbols - plan.num_splitters + plan.num_rules;
    if (num_items > stream_bits) {
        return false;
    }
    const u32 max_other = min(stream_bits - num_items, plan.pool_size);
    const u32 num_rows = (max_other + plan.num_rules) / kWarpSize + 2;
    WorkspaceCursor cursor{task.workspace};
    const u32 copied = plan.has_plain_tokens() ? 0 : plan.token_bytes_size + kChunk;
    plan.max_slots = min(max_other + plan.num_rules, plan.pool_size);
    plan.token_bytes = cursor.take<u8>(copied);
    plan.prefixes = cursor.take<u32>(plan.num_local_words);
    plan.word_ends = cursor.take<u32>(plan.num_local_words);
    plan.separator_sizes = cursor.take<u32>(plan.num_local_separators);
    plan.global_numbers = cursor.take<u32>(plan.num_global_words + plan.num_global_separators);
    plan.ranks = cursor.take<u32>(plan.num_symbols);
    plan.token_offsets = cursor.take<u32>(plan.num_tokens + 1);
    plan.first_ranks = cursor.take<u32>(plan.num_rules);
    plan.rule_starts = cursor.take<u32>(plan.num_rules);
    plan.other_ranks = cursor.take<u32>(max_other);
    plan.start_bits = cursor.take<u32>(num_rows);
    plan.row_rules = cursor.take<u32>(num_rows);
    plan.row_offsets = cursor.take<u32>(num_rows);
    plan.classes = cursor.take<u8>(plan.num_symbols);
    plan.words = task.tokens->word_table();
    plan.separators = task.tokens->separator_table();
    plan.head = task.head;
    plan.expansions = reinterpret_cast<u64*>(task.head + 1);
    plan.pool = reinterpret_cast<u8*>(plan.expansions + plan.num_symbols);
    return plan.num_symbols == task.num_symbols &&
           static_cast<u64>(cursor.next - task.workspace) <= task.workspace_size;
}

}  // namespace gompfs

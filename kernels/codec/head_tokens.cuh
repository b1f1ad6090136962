// Decodes the token bytes of a head, and writes the words and separators of its part to the pool.
//
// A local word is a prefix of the word before it, and bytes of its own. So byte p of a word comes
// from the nearest word, itself or before it, whose prefix has at most p bytes. All warps write a
// row of 32 words each, and find that word in masks; a byte that none of these words has comes from
// the word before all of them, which is in the pool by then.
//
// All other tokens are copies of bytes that do not depend on other tokens: global tokens are
// written like rows of symbols (write_row), and the local separators are adjacent in the token
// bytes as in the pool.
#pragma once

#include "codec/bit_block.cuh"
#include "codec/head.cuh"
#include "shared/cta_scan.cuh"
#include "shared/warp.cuh"

namespace gompfs {

// Finds where the local words end in the token bytes: after a space each. Returns false in all
// lanes if there are too few spaces. For one warp.
__device__ inline bool find_words(const HeadPlan& plan) {
    constexpr u32 kBytesPerLane = 4;
    const int lane = lane_id();
    const u32* const words = reinterpret_cast<const u32*>(plan.tokens());
    u32 num_found = 0;
    for (u32 first = 0; first < plan.token_bytes_size && num_found < plan.num_local_words;
         first += kBytesPerLane * kWarpSize) {
        const u32 position = first + lane * kBytesPerLane;
        const u32 bytes = position < plan.token_bytes_size ? words[position / kBytesPerLane] : 0;
        u32 spaces = 0;  // a bit by byte
#pragma unroll
        for (u32 index = 0; index < kBytesPerLane; ++index) {
            const bool is_space =
                (bytes >> 8 * index & 255) == ' ' && position + index < plan.token_bytes_size;
            spaces |= (is_space ? 1u : 0u) << index;
        }
        u32 found = num_found + inclusive_sum(__popc(spaces), lane);
        num_found = __shfl_sync(kAllLanes, found, kWarpSize - 1);
        found -= __popc(spaces);
        for (; spaces != 0; spaces &= spaces - 1, ++found) {
            if (found < plan.num_local_words) {
                plan.word_ends[found] = position + __ffs(spaces);
            }
        }
    }
    return num_found >= plan.num_local_words;
}

// Decodes the token bytes and finds the words in them. For one warp.
__device__ inline bool read_token_bytes(const HeadPlan& plan, HeadShared& shared) {
    if (!plan.has_plain_tokens()) {
        const BlockTask task{0, reinterpret_cast<const u8*>(plan.payload) + kHeadHeaderSize,
                             plan.stored_size, plan.token_bytes, plan.token_bytes_size};
        PieceRows rows{shared.bit.row};
        if (!decode_bit_block(task, shared.bit, shared.token_classes, rows)) {
            return false;
        }
        __syncwarp();
    }
    return find_words(plan);
}

// The token bytes of a local word, and its prefix.
struct LocalWord {
    u32 prefix;
    u32 begin, end;  // of the bytes of its own, in the token bytes

    __device__ static LocalWord at(const HeadPlan& plan, u32 index) {
        return {plan.prefixes[index], index == 0 ? 0 : plan.word_ends[index - 1],
                plan.word_ends[index]};
    }
    __device__ u32 size() const { return prefix + (end - begin); }
};

constexpr u32 kImpossibleSize = 0xffffffff;

// The bytes that a local word has in the pool, with its space.
__device__ inline u32 size_of_local_word(const HeadPlan& plan, u32 index) {
    const LocalWord word = LocalWord::at(plan, index);
    // With its space the word before is larger than the prefix. Before the first word is an empty
    // one.
    const u32 before = index == 0 ? 1 : LocalWord::at(plan, index - 1).size();
    return word.prefix < before && word.size() > 1 ? word.size() : kImpossibleSize;
}

__device__ inline u32 size_of_global(const TokenTable& table, u32 number) {
    return table.starts[number + 1] - table.starts[number];
}

// The bytes that a token has in the pool, or kImpossibleSize.
__device__ inline u32 size_of_token(const HeadPlan& plan, u32 token) {
    if (token < plan.num_local_words) {
        return size_of_local_word(plan, token);
    }
    token -= plan.num_local_words;
    if (token < plan.num_global_words) {
        return size_of_global(plan.words, plan.global_numbers[token]);
    }
    token -= plan.num_global_words;
    if (token < plan.num_local_separators) {
        return plan.separator_sizes[token];
    }
    token -= plan.num_local_separators;
    return size_of_global(plan.separators, plan.global_numbers[plan.num_global_words + token]);
}

// An expansion as `struct Expansion` takes it apart.
__device__ inline u64 pack_expansion(u32 offset, u32 size, bool begins_with_separator,
                                     bool ends_with_word) {
    return offset | static_cast<u64>(size) << 32 | (ends_with_word ? 1ull << 62 : 0) |
           (begins_with_separator ? 1ull << 63 : 0);
}

// Finds the offsets of all tokens in the pool, and writes the expansions of tokens and splitter.
// Sets shared.pool_end. Returns false in all threads if the pool is too small for the tokens, or if
// they do not fill the token bytes. For all threads of the CTA; ends with a barrier.
__device__ inline bool place_tokens(HeadShared& shared) {
    const HeadPlan& plan = shared.plan;
    const u32 num_words = plan.num_local_words + plan.num_global_words;
    u32 end = 0;
    for (u32 first = 0; first < plan.num_tokens; first += kHeadThreads) {
        const u32 token = first + threadIdx.x;
        const u32 size = token < plan.num_tokens ? size_of_token(plan, token) : 0;
        const bool is_possible = size <= kMaxExpansionSize;
        const u32 added = is_possible ? size : 0;
        const u32 offset = end + sum_before(added, shared.scan);
        if (token < plan.num_tokens) {
            plan.token_offsets[token] = offset;
            const bool is_word = token < num_words;
            plan.expansions[plan.ranks[plan.first_word() + token]] =
                pack_expansion(offset, added, !is_word, is_word);
        }
        if (threadIdx.x == kHeadThreads - 1) {
            shared.tile_end = offset + added;
        }
        if (any_thread(!is_possible || offset + added > plan.pool_size)) {
            return false;
        }
        end = shared.tile_end;
    }
    if (threadIdx.x == 0) {
        plan.token_offsets[plan.num_tokens] = shared.pool_end = end;
        if (plan.num_splitters != 0) {
            plan.expansions[plan.ranks[0]] = pack_expansion(0, 0, true, false);
        }
    }
    __syncthreads();
    const u32 words_end = plan.num_local_words == 0 ? 0 : plan.word_ends[plan.num_local_words - 1];
    const u32* const separators = plan.token_offsets + num_words;
    return separators[plan.num_local_separators] - separators[0] ==
           plan.token_bytes_size - words_end;
}

// Takes up to kHeadThreads local words from `first` on into shared memory, one for each thread.
// Returns where this thread's word ends in the pool. Ends with a barrier.
__device__ inline u32 load_words(HeadShared& shared, u32 first) {
    const HeadPlan& plan = shared.plan;
    WordRows& rows = shared.word_rows;
    const u32 warp = threadIdx.x / kWarpSize;
    const u32 lane = lane_id();
    const u32 index = first + threadIdx.x;
    const bool is_active = index < plan.num_local_words;
    const LocalWord word = is_active ? LocalWord::at(plan, index) : LocalWord{0, 0, 0};
    rows.sources[threadIdx.x] = word.begin - word.prefix;
    rows.starts[threadIdx.x] = is_active ? plan.token_offsets[index] : 0;
    for (u32 least = 0; least <= kMaxMaskedPrefix; least += kWarpSize) {
        u32 mask = 0;
#pragma unroll 8
        for (u32 step = 0; step < kWarpSize; ++step) {
            const u32 up_to = __ballot_sync(kAllLanes, word.prefix <= least + step);
            mask = step == lane ? up_to : mask;
        }
        rows.with_prefix_to[least + lane][warp] = mask;
    }
    __syncthreads();
    return is_active ? plan.token_offsets[index + 1] : 0xffffffff;
}

// Returns the thread whose word stores byte `in_word` of word `lane` of this warp: that is the word
// itself, or the nearest word before it whose prefix has at most `in_word` bytes. Returns -1 if no
// thread has this word.
__device__ inline int thread_of_byte(const HeadShared& shared, u32 first, u32 lane, u32 in_word) {
    const u32 warp = threadIdx.x / kWarpSize;
    if (in_word > kMaxMaskedPrefix) {
        int thread = static_cast<int>(warp * kWarpSize + lane);
        while (thread >= 0 && shared.plan.prefixes[first + thread] > in_word) {
            --thread;
        }
        return thread;
    }
    const u32* const masks = shared.word_rows.with_prefix_to[in_word];
    u32 mask = masks[warp] & (0xffffffffu >> (31 - lane));
    int row = static_cast<int>(warp);
    while (mask == 0 && row > 0) {
        mask = masks[--row];
    }
    return mask == 0 ? -1 : row * kWarpSize + 31 - __clz(mask);
}

// Writes the words of this warp that load_words has taken; `end` is where this thread's word ends.
// `before` is where the word before all of them begins in the pool.
__device__ inline void write_words(const HeadShared& shared, u32 first, u32 end, u32 before) {
    const HeadPlan& plan = shared.plan;
    const WordRows& rows = shared.word_rows;
    const u32 first_thread = threadIdx.x / kWarpSize * kWarpSize;
    if (first + first_thread >= plan.num_local_words) {
        return;
    }
    const u8* const tokens = plan.tokens();
    const u32 row_end =
        plan.token_offsets[min(first + first_thread + kWarpSize, plan.num_local_words)];
    for (u32 sector = rows.starts[first_thread]; sector < row_end; sector += kWarpSize) {
        const u32 position = sector + lane_id();
        const u32 of_byte = min(position, row_end - 1);
        const u32 lane = count_up_to(end, of_byte);
        const u32 in_word = of_byte - rows.starts[first_thread + lane];
        const int thread = thread_of_byte(shared, first, lane, in_word);
        const u8 byte =
            thread < 0 ? plan.pool[before + in_word] : tokens[rows.sources[thread] + in_word];
        if (position < row_end) {
            plan.pool[position] = byte;
        }
    }
}

// Writes the local words to the pool. For all threads of the CTA.
__device__ inline void write_local_words(HeadShared& shared) {
    const HeadPlan& plan = shared.plan;
    for (u32 first = 0; first < plan.num_local_words; first += kHeadThreads) {
        const u32 end = load_words(shared, first);
        write_words(shared, first, end, first == 0 ? 0 : plan.token_offsets[first - 1]);
        __syncthreads();
    }
}

// Writes this warp's rows of the global words, and then of the global separators.
__device__ inline void write_global_tokens(const HeadPlan& plan, u32 warp, RowPieces& pieces) {
    const u32 num_words = plan.num_local_words + plan.num_global_words;
    for (u32 kind = 0; kind < 2; ++kind) {
        const bool are_words = kind == 0;
        const TokenTable& table = are_words ? plan.words : plan.separators;
        const u32 count = are_words ? plan.num_global_words : plan.num_global_separators;
        const u32* const numbers = plan.global_numbers + (are_words ? 0 : plan.num_global_words);
        const u32* const offsets =
            plan.token_offsets +
            (are_words ? plan.num_local_words : num_words + plan.num_local_separators);
        for (u32 row = warp * kWarpSize; row < count; row += kHeadThreads) {
            const u32 index = row + lane_id();
            const bool is_active = index < count;
            const u32 source = is_active ? table.starts[numbers[index]] : 0;
            const u32 start = is_active ? offsets[index] : 0;
            write_row(plan.pool, table.bytes, offsets[row], offsets[min(row + kWarpSize, count)],
                      start, source, is_active, pieces);
        }
    }
}

// Writes all words and separators to the pool. For all threads of the CTA; ends with a barrier.
__device__ inline void write_tokens(HeadShared& shared) {
    const HeadPlan& plan = shared.plan;
    const u32 warp = threadIdx.x / kWarpSize;
    const u32 num_words = plan.num_local_words + plan.num_global_words;
    write_local_words(shared);
    write_global_tokens(plan, warp, shared.pieces[warp]);
    const u32 begin = plan.token_offsets[num_words];
    const u32 size = plan.token_offsets[num_words + plan.num_local_separators] - begin;
    const u8* const separators = plan.tokens() + (plan.token_bytes_size - size);
    for (u32 index = threadIdx.x; index < size; index += kHeadThreads) {
        plan.pool[begin + index] = separators[index];
    }
    __syncthreads();
}

}  // namespace gompfs

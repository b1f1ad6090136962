// Decodes the codes and the thirteen arrays of a head with one warp.
//
// Item i of an array is the next item of sub-block i % 32, so lane i decodes sub-block i through
// all arrays (ItemReader). The table of a class code is built just before its array is decoded.
// Differences become numbers by a prefix sum over each row of 32 items.
//
// Invariants
//
// - No lane reads bits after the end of its sub-block, but for the load of 64 bits that begins at
//   or before the end. After the last array every sub-block must have ended exactly.
// - A row is checked before anything is written that other steps use as an index.
#pragma once

#include "codec/head.cuh"
#include "codec/huffman.cuh"
#include "codec/sub_blocks.cuh"
#include "shared/warp.cuh"

namespace gompfs {

__device__ inline u32 class_base(u32 number_class) {
    return ((2 + number_class % 2) << number_class / 2) - 2;
}

// The sum of the values of this lane and all lower lanes. They may be 32 bits long.
__device__ inline u64 inclusive_sum_of_long(u32 value, int lane) {
    const u64 high = inclusive_sum(value >> 16, lane);
    return (high << 16) + inclusive_sum(value & 0xffff, lane);
}

// Decodes the items of one sub-block.
struct ItemReader {
    const u32* words;  // the payload
    u32 position;      // in bits from the payload's start
    u32 end;
    u64 window;     // the bits from `position` on
    bool is_valid;  // whether all items so far end at `end` or before

    // Reads the sizes of the sub-blocks. Returns false in all lanes if they do not fill the stream.
    __device__ bool open(const HeadPlan& plan, u32 payload_size) {
        words = plan.payload;
        const u32 fields = (plan.codes_start() + plan.codes_size) * 8;
        const u32 start = fields + kNumSubBlocks * plan.size_width;
        const u32 stream_end = (payload_size - kBitPadding) * 8;
        // 32 times the size of a stream is below 2^32, so no sum wraps.
        if (plan.size_base > stream_end || start > stream_end) {
            return false;
        }
        const u32 last_end =
            locate_sub_blocks(words, fields, plan.size_width, plan.size_base, start, position, end);
        if (!__all_sync(kAllLanes, end <= stream_end) || stream_end - last_end >= 8) {
            return false;
        }
        window = load_bits(words, position);
        is_valid = true;
        return true;
    }

    __device__ void advance(u32 num_bits) {
        position += num_bits;
        is_valid = is_valid && position <= end;
        position = min(position, end);
        window = load_bits(words, position);
    }

    __device__ u32 read_class(const u16* table) {
        const u32 entry = table[window & (kClassCodeEntries - 1)];
        advance(entry >> 8);
        return entry & 255;
    }

    __device__ u32 read_number(const u16* table) {
        const u32 entry = table[window & (kClassCodeEntries - 1)];
        const u32 number_class = entry & 255, length = entry >> 8;
        const u32 extra_bits = number_class / 2;
        const u32 number = class_base(number_class) + low_bits(window >> length, extra_bits);
        advance(length + extra_bits);
        return number;
    }
};

// Reads the class code at a bit position, and builds its table. Returns the position after it, or 0
// in all lanes if it is not valid, or ends after `end`. Thirteen copies of this function would take
// 100 KB.
GOMPFS_NOINLINE __device__ inline u32 read_class_code(const u32* payload, u32 position, u32 end,
                                                      HeadShared& shared) {
    const u32 num_lengths = low_bits(load_bits(payload, position), kNumClassLengthsBits);
    const u32 first = position + kNumClassLengthsBits;
    for (u32 index = lane_id(); index < kNumClasses; index += kWarpSize) {
        const u64 bits = load_bits(payload, first + index * kClassLengthBits);
        const u32 length = index < num_lengths ? low_bits(bits, kClassLengthBits) : 0;
        shared.class_lengths[index] = static_cast<u8>(length);
    }
    __syncwarp();
    const u32 next = first + num_lengths * kClassLengthBits;
    if (num_lengths > kNumClasses || next > end ||
        !build_decode_table<kMaxClassBits>(shared.class_lengths, kNumClasses, shared.class_scratch,
                                           shared.class_table)) {
        return 0;
    }
    return next;
}

// Reads one array after another. All lanes of a warp call each function, and get the same result,
// false if something is not valid. `take` is called by all lanes: take(index, item, is_active)
// returns whether the item is valid, and must not have any effect on other arrays before the row
// was checked if it is not.
class HeadArrays {
  public:
    __device__ HeadArrays(const HeadTask& task, HeadShared& shared)
        : plan_(shared.plan), shared_(shared), payload_size_(task.payload_size) {}

    __device__ bool read() {
        const bool is_valid = read_levels() && in_.open(plan_, payload_size_) &&
                              read_local_tokens() && read_global_words() &&
                              read_global_separators() && read_classes() && read_rule_sizes() &&
                              read_first_ranks() && read_other_ranks() && is_at_end();
        if (is_valid) {
            count_slots();
        }
        return is_valid;
    }

  private:
    // Reads the number of levels, and their numbers of rules.
    __device__ bool read_levels() {
        code_position_ = plan_.codes_start() * 8;
        codes_end_ = code_position_ + plan_.codes_size * 8;
        const u32 num_levels = low_bits(load_bits(plan_.payload, code_position_), kNumLevelsBits);
        code_position_ += kNumLevelsBits;
        u32 num_rules = 0;
        for (u32 level = 0; level < num_levels && code_position_ <= codes_end_; ++level) {
            const u64 bits = load_bits(plan_.payload, code_position_);
            const u32 num_bits = __ffs(~static_cast<u32>(bits)) - 1u;
            if (num_bits > kMaxLevelSizeBits) {
                return false;
            }
            if (lane_id() == 0) {
                shared_.level_rules[level] = num_rules;
            }
            num_rules += 1u << num_bits | low_bits(bits >> (num_bits + 1), num_bits);
            code_position_ += 2 * num_bits + 1;
        }
        if (lane_id() == 0) {
            shared_.num_levels = num_levels;
            shared_.level_rules[num_levels] = num_rules;
        }
        __syncwarp();
        return num_rules == plan_.num_rules && code_position_ <= codes_end_;
    }

    // Reads the next class code, for `count` items.
    __device__ bool read_code(u32 count) {
        code_position_ = read_class_code(plan_.payload, code_position_, codes_end_, shared_);
        return code_position_ != 0 && (count == 0 || !is_code_empty());
    }

    __device__ bool is_code_empty() const { return shared_.class_table[0] == kNoCodeword; }

    template <class Read, class Take>
    __device__ bool read_items(u32 count, Read&& read, Take&& take) {
#pragma unroll 1
        for (u32 first = 0; first < count; first += kWarpSize) {
            const u32 index = first + lane_id();
            const bool is_active = index < count;
            const u32 item = is_active ? read() : 0;
            const bool fits = take(index, item, is_active);
            if (!__all_sync(kAllLanes, fits && in_.is_valid)) {
                return false;
            }
        }
        return true;
    }

    template <class Take>
    __device__ bool read_numbers(u32 count, Take&& take) {
        const u16* const table = shared_.class_table;
        return read_code(count) && read_items(count, [&] { return in_.read_number(table); }, take);
    }

    // Reads the classes of symbols from `first_symbol` on.
    __device__ bool read_some_classes(u32 first_symbol, u32 count) {
        const u16* const table = shared_.class_table;
        u8* const classes = plan_.classes + first_symbol;
        return read_items(
            count, [&] { return in_.read_class(table); },
            [&](u32 index, u32 item, bool is_active) {
                if (is_active) {
                    classes[index] = static_cast<u8>(item);
                }
                return true;
            });
    }

    // Arrays 0 and 1.
    __device__ bool read_local_tokens() {
        const auto take_into = [](u32* numbers, u32 added) {
            return [=](u32 index, u32 number, bool is_active) {
                if (is_active) {
                    numbers[index] = number + added;
                }
                return number < kMaxExpansionSize;
            };
        };
        return read_numbers(plan_.num_local_words, take_into(plan_.prefixes, 0)) &&
               read_numbers(plan_.num_local_separators, take_into(plan_.separator_sizes, 1));
    }

    // Reads numbers of a list of global tokens, which ascend. `next` is the lowest possible one.
    __device__ bool read_ascending(u32 count, u32 limit, u32* numbers, u32& next) {
        return read_numbers(count, [&](u32 index, u32 difference, bool is_active) {
            const u64 end = next + inclusive_sum_of_long(is_active ? difference + 1 : 0, lane_id());
            next = static_cast<u32>(__shfl_sync(kAllLanes, end, kWarpSize - 1));
            if (is_active) {
                numbers[index] = static_cast<u32>(end) - 1;
            }
            return end <= limit;
        });
    }

    // Arrays 2 to 4.
    __device__ bool read_global_words() {
        const u32 counts[] = {plan_.num_frequent, plan_.num_common,
                              plan_.num_global_words - plan_.num_frequent - plan_.num_common};
        u32* numbers = plan_.global_numbers;
        u32 next = 0;
        for (const u32 count : counts) {
            if (!read_ascending(count, plan_.words.count, numbers, next)) {
                return false;
            }
            numbers += count;
        }
        return true;
    }

    // Array 5.
    __device__ bool read_global_separators() {
        u32 next = 0;
        return read_ascending(plan_.num_global_separators, plan_.separators.count,
                              plan_.global_numbers + plan_.num_global_words, next);
    }

    // Arrays 6 to 9. Array 8 has the class of the splitter before those of the separators.
    __device__ bool read_classes() {
        const u32 num_local = plan_.num_local_words, num_global = plan_.num_global_words;
        const u32 first_word = plan_.first_word();
        const u32 first_separator = first_word + num_local + num_global;
        const u32 num_splitters = plan_.num_splitters;
        const u32 num_others = plan_.first_rule() - first_separator + num_splitters;
        const u16* const table = shared_.class_table;
        return read_code(num_local) && read_some_classes(first_word, num_local) &&
               read_code(num_global) && read_some_classes(first_word + num_local, num_global) &&
               read_code(num_others) &&
               read_items(
                   num_others, [&] { return in_.read_class(table); },
                   [&](u32 index, u32 item, bool is_active) {
                       if (is_active) {
                           const u32 symbol =
                               index < num_splitters ? 0 : first_separator + index - num_splitters;
                           plan_.classes[symbol] = static_cast<u8>(item);
                       }
                       return true;
                   }) &&
               read_code(plan_.num_rules) && read_some_classes(plan_.first_rule(), plan_.num_rules);
    }

    // Array 10. A slot is a symbol of a rule; the slots of all rules are numbered, rule after rule.
    __device__ bool read_rule_sizes() {
        num_slots_ = 0;
        return read_numbers(plan_.num_rules, [&](u32 index, u32 number, bool is_active) {
            const bool is_possible = number <= kMaxExpansionSize - 2;
            const u32 size = is_active && is_possible ? number + 2 : 0;
            const u32 end = num_slots_ + inclusive_sum(size, lane_id());
            const bool fits = is_possible && end <= plan_.max_slots;
            if (is_active && fits) {
                const u32 start = end - size;
                plan_.rule_starts[index] = start;
                atomicOr(&plan_.start_bits[start / kWarpSize], 1u << start % kWarpSize);
            }
            num_slots_ = __shfl_sync(kAllLanes, end, kWarpSize - 1);
            return fits;
        });
    }

    // Array 11.
    __device__ bool read_first_ranks() {
        const int lane = lane_id();
        u32 level = 0;   // the next one that begins
        u32 total = 0;   // of all differences so far
        u32 before = 0;  // of all differences before the current level
        return read_numbers(plan_.num_rules, [&](u32 index, u32 difference, bool is_active) {
            const u32 first = index - lane;
            u32 level_starts = 0;  // a bit by lane
            for (; level < shared_.num_levels && shared_.level_rules[level] - first < kWarpSize;
                 ++level) {
                level_starts |= 1u << (shared_.level_rules[level] - first);
            }
            // The sums may wrap: differences of two of them do not.
            const bool is_possible = difference < plan_.num_symbols;
            const u32 added = is_possible ? difference : 0;
            const u32 end = total + inclusive_sum(added, lane);
            const u32 own = level_starts & (lanes_below(lane) | 1u << lane);
            const u32 before_level =
                __shfl_sync(kAllLanes, end - added, own == 0 ? 0 : 31 - __clz(own));
            const u32 rank = end - (own == 0 ? before : before_level);
            if (is_active) {
                plan_.first_ranks[index] = rank;
            }
            total = __shfl_sync(kAllLanes, end, kWarpSize - 1);
            before =
                level_starts == 0 ? before : __shfl_sync(kAllLanes, before_level, kWarpSize - 1);
            return is_possible && rank < plan_.num_symbols;
        });
    }

    // Array 12. Its code is that of the ranks in blocks.
    __device__ bool read_other_ranks() {
        u32* const ranks = plan_.other_ranks;
        const bool are_valid =
            read_numbers(num_slots_ - plan_.num_rules, [&](u32 index, u32 rank, bool is_active) {
                if (is_active) {
                    ranks[index] = rank;
                }
                return rank < plan_.num_symbols;
            });
        return are_valid && store_code();
    }

    // Writes the head but for its expansions and its pool.
    __device__ bool store_code() {
        TadocHead& head = *plan_.head;
        const u32 lane = lane_id();
        const bool is_empty = is_code_empty();
        for (u32 index = lane; index < kClassCodeEntries; index += kWarpSize) {
            head.code.classes[index] = is_empty ? 0 : static_cast<u8>(shared_.class_table[index]);
        }
        for (u32 index = lane; index < sizeof head.code.lengths; index += kWarpSize) {
            head.code.lengths[index] = index < kNumClasses ? shared_.class_lengths[index] : 0;
        }
        if (lane == 0) {
            head.num_ranks = is_empty ? 0 : plan_.num_symbols;
            head.pool_offset = static_cast<u32>(plan_.pool - reinterpret_cast<u8*>(plan_.head));
            head.unused[0] = head.unused[1] = 0;
        }
        return true;
    }

    // Whether the codes and all sub-blocks end where they should.
    __device__ bool is_at_end() {
        return codes_end_ - code_position_ < 8 && __all_sync(kAllLanes, in_.position == in_.end);
    }

    // Finds the slots of each level, and counts the rules that begin before each row of slots.
    __device__ void count_slots() {
        __syncwarp();
        const u32 lane = lane_id(), num_levels = shared_.num_levels;
        if (lane <= num_levels) {
            shared_.level_slots[lane] =
                lane < num_levels ? plan_.rule_starts[shared_.level_rules[lane]] : num_slots_;
        }
        u32 num_rules = 0;
        for (u32 first = 0; first * kWarpSize < num_slots_; first += kWarpSize) {
            const u32 row = first + lane;
            const u32 in_row = row * kWarpSize < num_slots_ ? __popc(plan_.start_bits[row]) : 0;
            const u32 through = num_rules + inclusive_sum(in_row, lane);
            if (row * kWarpSize < num_slots_) {
                plan_.row_rules[row] = through - in_row;
            }
            num_rules = __shfl_sync(kAllLanes, through, kWarpSize - 1);
        }
    }

    HeadPlan& plan_;
    HeadShared& shared_;
    const u32 payload_size_;
    ItemReader in_;
    u32 code_position_, codes_end_;  // in bits from the payload's start
    u32 num_slots_;
};

}  // namespace gompfs

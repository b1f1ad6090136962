// Expands the rules of a head into the pool, level by level.
//
// The rules of a level are adjacent in the pool, and their symbols have lower levels. So a level is
// expanded like the content of a block: rows of 32 symbols are placed by prefix sums and written by
// write_row. A space is taken away only between two symbols of the same rule.
//
// Each level takes four steps, with barriers between them: add up the sizes of each row; place the
// rows; write them, and note where each rule begins; write the expansions of the rules. Before the
// last step the symbols of this and of higher levels have no expansion, which is how a rule is
// found that uses one of them. (Nor does the splitter have bytes.)
#pragma once

#include "codec/head.cuh"
#include "codec/head_tokens.cuh"
#include "shared/warp.cuh"

namespace gompfs {

// The rules of one level, and their slots.
struct Level {
    u32 first_rule, end_rule;
    u32 first_slot, end_slot;

    __device__ u32 first_row() const { return first_slot / kWarpSize; }
    __device__ u32 end_row() const { return (end_slot + kWarpSize - 1) / kWarpSize; }
};

// This lane's slot in a row, and the symbol in the slot.
struct RuleSlot {
    bool is_active;  // whether the slot belongs to the level
    bool begins_rule, ends_rule;
    u32 rule;
    Expansion symbol;  // empty if there is none, or if its symbol has no bytes
    u32 size;          // of the symbol, without a space that is taken away
};

__device__ inline Expansion expansion_of_slot(const HeadPlan& plan, u32 slot, u32 rule,
                                              bool begins_rule) {
    // other_ranks has no rank for the first slot of a rule: one rank less for each rule before this
    // one, and one less for this rule.
    const u32 rank = begins_rule ? plan.first_ranks[rule] : plan.other_ranks[slot - rule - 1];
    return {plan.expansions[rank]};
}

__device__ inline RuleSlot load_slot(const HeadPlan& plan, const Level& level, u32 row) {
    const u32 lane = lane_id();
    const u32 slot = row * kWarpSize + lane;
    const u32 starts = plan.start_bits[row];
    const u32 up_to_lane = 0xffffffffu >> (31 - lane);
    RuleSlot found{};
    found.is_active = slot >= level.first_slot && slot < level.end_slot;
    found.begins_rule = (starts >> lane & 1) != 0;
    const bool next_begins = lane < kWarpSize - 1 ? (starts >> (lane + 1) & 1) != 0
                                                  : (plan.start_bits[row + 1] & 1) != 0;
    found.ends_rule = next_begins || slot + 1 == level.end_slot;
    found.rule = plan.row_rules[row] + __popc(starts & up_to_lane) - 1;
    if (found.is_active) {
        found.symbol = expansion_of_slot(plan, slot, found.rule, found.begins_rule);
    }
    const u32 separators = __ballot_sync(kAllLanes, found.symbol.begins_with_separator());
    bool before_separator = lane < kWarpSize - 1 && (separators >> (lane + 1) & 1) != 0;
    if (lane == kWarpSize - 1 && found.is_active && !found.ends_rule) {
        before_separator =
            expansion_of_slot(plan, slot + 1, found.rule, false).begins_with_separator();
    }
    const bool loses_space = !found.ends_rule && before_separator && found.symbol.ends_with_word();
    found.size = found.symbol.size() - (loses_space ? 1 : 0);
    return found;
}

// Adds up the sizes of this warp's rows. Returns false in some lane if a symbol has no bytes.
__device__ inline bool size_rows(const HeadPlan& plan, const Level& level) {
    bool is_valid = true;
    for (u32 row = level.first_row() + threadIdx.x / kWarpSize; row < level.end_row();
         row += kHeadWarps) {
        const RuleSlot slot = load_slot(plan, level, row);
        is_valid = is_valid && (!slot.is_active || slot.symbol.size() != 0);
        const u32 through = inclusive_sum(slot.size, lane_id());
        if (lane_id() == kWarpSize - 1) {
            plan.row_offsets[row] = through;
        }
    }
    return is_valid;
}

// Replaces the sizes of rows by their offsets in the pool. Returns false in some lane if the pool
// is too small. For one warp.
__device__ inline bool place_rows(HeadShared& shared, const Level& level) {
    const HeadPlan& plan = shared.plan;
    u32 end = shared.pool_end;
    for (u32 first = level.first_row(); first < level.end_row(); first += kWarpSize) {
        const u32 row = first + lane_id();
        const u32 size = row < level.end_row() ? plan.row_offsets[row] : 0;
        const u32 row_end = end + inclusive_sum(size, lane_id());
        if (row < level.end_row()) {
            plan.row_offsets[row] = row_end - size;
        }
        end = __shfl_sync(kAllLanes, row_end, kWarpSize - 1);
        if (end > plan.pool_size) {  // in all lanes, before a sum could wrap
            return false;
        }
    }
    __syncwarp();  // all lanes have read the old end
    if (lane_id() == 0) {
        shared.pool_end = end;
    }
    return true;
}

// Writes this warp's rows to the pool. Records where each rule begins, and whether it ends with a
// word.
__device__ inline void write_rows(HeadShared& shared, const Level& level) {
    const HeadPlan& plan = shared.plan;
    const u32 warp = threadIdx.x / kWarpSize;
    u8* const end_with_word = plan.classes + plan.first_rule();
    for (u32 row = level.first_row() + warp; row < level.end_row(); row += kHeadWarps) {
        const RuleSlot slot = load_slot(plan, level, row);
        const u32 begin = plan.row_offsets[row];
        const u32 end = begin + inclusive_sum(slot.size, lane_id());
        const u32 start = end - slot.size;
        write_row(plan.pool, plan.pool, begin, __shfl_sync(kAllLanes, end, kWarpSize - 1), start,
                  slot.symbol.offset(), slot.size != 0, shared.pieces[warp]);
        if (slot.is_active && slot.begins_rule) {
            plan.rule_starts[slot.rule] = start;
        }
        if (slot.is_active && slot.ends_rule) {
            end_with_word[slot.rule] = slot.symbol.ends_with_word();
        }
    }
}

// Writes the expansions of the rules of a level. Returns false in a thread if one is too long.
__device__ inline bool write_expansions(HeadShared& shared, const Level& level) {
    const HeadPlan& plan = shared.plan;
    const u32* const ranks = plan.ranks + plan.first_rule();
    const u8* const end_with_word = plan.classes + plan.first_rule();
    bool is_valid = true;
    for (u32 rule = level.first_rule + threadIdx.x; rule < level.end_rule; rule += kHeadThreads) {
        const u32 start = plan.rule_starts[rule];
        const u32 end = rule + 1 < level.end_rule ? plan.rule_starts[rule + 1] : shared.pool_end;
        const Expansion first{plan.expansions[plan.first_ranks[rule]]};
        is_valid = is_valid && end - start <= kMaxExpansionSize;
        plan.expansions[ranks[rule]] = pack_expansion(
            start, end - start, first.begins_with_separator(), end_with_word[rule] != 0);
    }
    return is_valid;
}

// Expands all rules. Returns false in all threads if one is not valid, or if the pool has not
// exactly its size at the end. For all threads of the CTA.
__device__ inline bool expand_rules(HeadShared& shared) {
    const HeadPlan& plan = shared.plan;
    for (u32 number = 0; number < shared.num_levels; ++number) {
        const Level level{shared.level_rules[number], shared.level_rules[number + 1],
                          shared.level_slots[number], shared.level_slots[number + 1]};
        if (any_thread(!size_rows(plan, level)) ||
            any_thread(threadIdx.x < kWarpSize && !place_rows(shared, level))) {
            return false;
        }
        write_rows(shared, level);
        __syncthreads();
        if (any_thread(!write_expansions(shared, level))) {
            return false;
        }
    }
    return shared.pool_end == plan.pool_size;
}

}  // namespace gompfs

// The rules by which a walk over the matches of a block cuts it into sequences.
#pragma once

#include "encode/open_group.cuh"

namespace gompfs {

struct WalkRules {
    SearchRules search;
    u32 lazy_steps;
    u32 misses_to_skip_log2;
    u32 max_literal_length;
    u32 min_match_length;
    u32 group_size_log2;
    SourceRule source_rule;
    bool ends_literals;     // as the strict rule demands
    bool later_ends_later;  // deferring: a match must end after the one at hand
};

// The settings as kernels get them: in the order of the fields of WalkSettings in
// gompfs/gpu/parser.py.
struct WalkSettings {
    u32 chain_length, nice_length, max_match_length, max_match_offset, finds_short, lazy_steps,
        skips, max_literal_length, min_match_length, group_size_log2, dependency_elimination,
        strict_sources, later_ends_later;
};

__device__ inline WalkRules walk_rules(const WalkSettings& settings) {
    return {{settings.chain_length, settings.nice_length, settings.max_match_length,
             settings.max_match_offset, settings.finds_short != 0},
            settings.lazy_steps,
            settings.skips != 0 ? kMissesToSkipLog2 : kMissesToSkipSlowlyLog2,
            settings.max_literal_length,
            settings.min_match_length,
            settings.group_size_log2,
            settings.dependency_elimination == 0 ? SourceRule::kAny
            : settings.strict_sources == 0       ? SourceRule::kUsual
                                                 : SourceRule::kStrict,
            settings.strict_sources != 0,
            settings.later_ends_later != 0};
}

}  // namespace gompfs

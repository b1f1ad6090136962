// Counts of the terms of files: the two directions of traversal (TADOC, G-TADOC).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/cancellation.h"
#include "grammar/rule_graph.h"

namespace gompfs {

enum class Direction : std::uint8_t { automatic = 0, top_down = 1, bottom_up = 2 };

struct TermCount {
    std::uint32_t term;
    std::uint64_t count;
};

// The terms of each rule with all rules below it, counted once (the paper's local tables).
struct LocalTables {
    std::vector<std::uint64_t> starts;  // by node, those of files empty; counts[starts[node]] on
    std::vector<TermCount> counts;
};

// Whether it is sooner done bottom-up: the paper's choice by the number of files. Top-down visits,
// for each file, every rule that it uses; bottom-up makes all local tables, then reads one for each
// element of the files. `bottom_up` is kept to where tables may take no more than
// kMaxLocalCounts, as their size can grow with the square of the grammar's.
constexpr std::uint64_t kMaxLocalCounts = std::uint64_t{1} << 22;
bool choose_bottom_up(const RuleGraph& graph, Direction direction);

LocalTables build_local_tables(const RuleGraph& graph);

// Counts the terms of some files of a graph together; one for each thread.
class TermCounter {
  public:
    // Top-down without tables, bottom-up with them.
    TermCounter(const RuleGraph& graph, const LocalTables* tables);

    // What occurs in these files (places in graph.files), in no order. Valid until the next call.
    std::span<const TermCount> count(std::span<const std::uint32_t> files);

  private:
    void visit_top_down(std::span<const std::uint32_t> files);
    void add_weight(std::uint32_t node, std::uint64_t weight);
    std::uint32_t next_pending(std::uint32_t from) const;
    void read_tables(std::uint32_t node);
    void add(std::uint32_t term, std::uint64_t count);

    const RuleGraph& graph_;
    const LocalTables* tables_;
    std::vector<std::uint64_t> weights_;        // by node, 0 outside of calls
    std::vector<std::uint64_t> pending_;        // a bit per node that has a weight
    std::vector<std::uint64_t> pending_words_;  // a bit per word of pending_ that is not 0
    std::vector<std::uint64_t> counts_;         // by term, 0 outside of calls
    std::vector<std::uint32_t> seen_;           // terms with a count
    std::vector<TermCount> result_;
    CancellationPoint point_;
};

}  // namespace gompfs
